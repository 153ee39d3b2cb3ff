package observe

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const alerts = "../../configs/prometheus/alerts.yaml"

// promtool is the path of Prometheus' own checker.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian has it in the package prometheus): only Prometheus itself can say whether it takes this")
	}
	return path
}

// An alert on a metric that is not there never fires, and nobody notices.
func TestAlertsAskForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Load(text, &file); err != nil {
		t.Fatal(err)
	}
	o, _ := busy(t)
	series := scraped(t, o)
	selector := regexp.MustCompile(`(mcp_gateway_\w+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)(=~|=)"([^"]*)"`)
	rules := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules++
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s does not say how bad it is, what it is, and what to do", rule.Alert)
			}
			found := selector.FindAllStringSubmatch(rule.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s asks for nothing: %s", rule.Alert, rule.Expr)
			}
			for _, f := range found {
				if !strings.Contains(series, "\n# TYPE "+f[1]+" ") {
					t.Errorf("%s asks for %s, which is not there", rule.Alert, f[1])
				}
				for _, m := range matcher.FindAllStringSubmatch(f[2], -1) {
					values := []string{m[3]}
					if m[2] == "=~" {
						values = strings.Split(m[3], "|")
					}
					missing := func(v string) bool { return !strings.Contains(series, m[1]+`="`+v+`"`) }
					if slices.ContainsFunc(values, missing) {
						t.Errorf("%s asks for %s of %s, which it does not have", rule.Alert, m[0], f[1])
					}
				}
			}
		}
	}
	if rules < 9 {
		t.Errorf("only %d alerts", rules)
	}
}

func TestPrometheusTakesTheAlerts(t *testing.T) {
	if out, err := exec.Command(promtool(t), "check", "rules", alerts).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Each alert fires when it should, and is silent before.
func TestAlertsFire(t *testing.T) {
	cmd := exec.Command(promtool(t), "test", "rules", "alerts.test.yaml")
	cmd.Dir = "testdata"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
