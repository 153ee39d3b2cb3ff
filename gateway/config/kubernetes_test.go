package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

const kubernetes = examples + "/kubernetes"

// A manifest has the fields of all kinds that the tests here look at.
type manifest struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		Template struct{ Spec pod }
		Ports    []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Rules []struct {
			HTTP struct{ Paths []ingressPath }
		}
	}
}

type pod struct {
	TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
	Containers                    []container
	Volumes                       []struct {
		Name      string
		Projected struct {
			Sources []struct {
				ConfigMap struct{ Name string } `yaml:"configMap"`
			}
		}
	}
}

type container struct {
	Image string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort string `yaml:"containerPort"`
	}
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	Lifecycle      any
	VolumeMounts   []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type ingressPath struct {
	Path    string
	Backend struct {
		Service struct {
			Name string
			Port struct{ Name string }
		}
	}
}

// manifestsOf are the documents of one file of the Kubernetes example.
func manifestsOf(t *testing.T, name string) []manifest {
	t.Helper()
	var list []manifest
	for text := range strings.SplitSeq(readAll(t, filepath.Join(kubernetes, name)), "\n---\n") {
		var m manifest
		if err := yaml.Load([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, m)
	}
	return list
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asInThePod loads the configuration of the ConfigMap from a folder such as the pods see: with a file for each key of the
// Secret that it refers to.
func asInThePod(t *testing.T, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gateway.yaml", text)
	for _, found := range regexp.MustCompile(`\$\{file:([a-z0-9-]+)\}`).FindAllStringSubmatch(text, -1) {
		// Base64 of 32 bytes, which does for a key and for a token.
		write(found[1], "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	}
	c, warned, err := Load(filepath.Join(dir, "gateway.yaml"))
	if err != nil || len(warned) > 0 {
		t.Fatalf("%v\n%v", err, Problems(warned))
	}
	return c
}

func TestKubernetesConfigLoads(t *testing.T) {
	text := readAll(t, filepath.Join(kubernetes, "gateway.yaml"))
	asInThePod(t, text)
	c := asInThePod(t, regexp.MustCompile(`(?m)^( *)#(|  +)([a-z])`).ReplaceAllString(text, "$1$2$3"))
	if len(c.Upstreams) < 2 || c.Upstreams[1].Credential == nil || c.Upstreams[1].Credential.BearerFile == "" {
		t.Errorf("with everything on there are %d upstreams, want one with a token of the Secret among them", len(c.Upstreams))
	}
	if !c.Watch {
		t.Error("nothing else makes a pod take up a changed ConfigMap, whose name stays the same")
	}
}

// What kustomize does not read is not applied, and nobody is told.
func TestKubernetesFilesAreAllApplied(t *testing.T) {
	var k struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
		Images []struct{ Name string }
	}
	if err := yaml.Load([]byte(readAll(t, filepath.Join(kubernetes, "kustomization.yaml"))), &k); err != nil {
		t.Fatal(err)
	}
	if len(k.ConfigMapGenerator) != 1 || len(k.Images) != 1 {
		t.Fatalf("%d ConfigMaps and %d images, want one of each", len(k.ConfigMapGenerator), len(k.Images))
	}
	named := append(slices.Clone(k.Resources), k.ConfigMapGenerator[0].Files...)
	named = append(named, "kustomization.yaml")
	slices.Sort(named)
	entries, err := os.ReadDir(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, entry := range entries {
		there = append(there, entry.Name())
	}
	if !slices.Equal(named, there) {
		t.Errorf("kustomization.yaml names %q, and there are %q", named, there)
	}
	p := manifestsOf(t, "deployment.yaml")[0].Spec.Template.Spec
	if image := p.Containers[0].Image; image != k.Images[0].Name {
		t.Errorf("the pods run %s, and the image that is replaced is %s", image, k.Images[0].Name)
	}
	if name := p.Volumes[0].Projected.Sources[0].ConfigMap.Name; name != k.ConfigMapGenerator[0].Name {
		t.Errorf("the pods mount the ConfigMap %s, and %s is made", name, k.ConfigMapGenerator[0].Name)
	}
}

// What the manifests say twice, once to Kubernetes and once to the gateway, must be the same.
func TestKubernetesAgreesWithItsConfig(t *testing.T) {
	c := asInThePod(t, readAll(t, filepath.Join(kubernetes, "gateway.yaml")))
	p := manifestsOf(t, "deployment.yaml")[0].Spec.Template.Spec
	gateway := p.Containers[0]
	ports := map[string]string{}
	for _, port := range gateway.Ports {
		ports[port.Name] = ":" + port.ContainerPort
	}
	for _, agree := range []struct{ what, manifest, config string }{
		{"the port mcp", ports["mcp"], c.Listen},
		{"the port admin", ports["admin"], c.Admin},
		{"the readiness probe", gateway.ReadinessProbe.HTTPGet.Path + " at " + gateway.ReadinessProbe.HTTPGet.Port, "/readyz at admin"},
		{"the liveness probe", gateway.LivenessProbe.HTTPGet.Path + " at " + gateway.LivenessProbe.HTTPGet.Port, "/healthz at admin"},
		{"the configuration's path", gateway.Args[2], gateway.VolumeMounts[0].MountPath + "/gateway.yaml"},
		{"the folder's volume", gateway.VolumeMounts[0].Name, p.Volumes[0].Name},
	} {
		if agree.manifest != agree.config {
			t.Errorf("%s: %q in the manifest, want %q", agree.what, agree.manifest, agree.config)
		}
	}
	// A child that does not end by itself has two seconds each for its input, SIGTERM and SIGKILL.
	const teardown = 6 * time.Second
	grace := time.Duration(p.TerminationGracePeriodSeconds) * time.Second
	if end := c.ShutdownDelay + c.ShutdownTimeout + teardown; end >= grace || c.ShutdownDelay < 5*time.Second || gateway.Lifecycle != nil {
		t.Errorf("a pod ends within %v, of which it serves on for %v, and is killed after %v, with the hooks %v; it must end in time without hooks",
			end, c.ShutdownDelay, grace, gateway.Lifecycle)
	}
}

// Clients reach the port of MCP and no other.
func TestKubernetesIngressLeadsToMCPOnly(t *testing.T) {
	c := asInThePod(t, readAll(t, filepath.Join(kubernetes, "gateway.yaml")))
	services := map[string]string{} // the name of the pods' port, by Service and port
	for _, service := range manifestsOf(t, "service.yaml") {
		for _, port := range service.Spec.Ports {
			services[service.Metadata.Name+" "+port.Name] = port.TargetPort
		}
	}
	ingress := manifestsOf(t, "ingress.yaml")[0]
	paths := 0
	for _, rule := range ingress.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			paths++
			if to := path.Backend.Service; path.Path != c.Path || services[to.Name+" "+to.Port.Name] != "mcp" {
				t.Errorf("%s leads to %s of %s, want %s and the port mcp of the pods", path.Path, to.Port.Name, to.Name, c.Path)
			}
		}
	}
	if paths != 1 {
		t.Errorf("%d paths, want one", paths)
	}
	if len(services) != 2 || services["mcp-gateway-admin admin"] != "admin" {
		t.Errorf("the Services are %v, want the port admin in one of its own", services)
	}
	for name, want := range map[string]string{"proxy-buffering": "off", "proxy-body-size": "4m", "proxy-read-timeout": "3600", "proxy-send-timeout": "3600"} {
		if got := ingress.Metadata.Annotations["nginx.ingress.kubernetes.io/"+name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
