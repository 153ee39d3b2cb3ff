package process

import (
	"slices"
	"testing"
)

func TestEnviron(t *testing.T) {
	own := []string{"PATH=/bin", "TOKEN=secret", "HOME=/root", "path=/other", "=C:=C:\\", "Path=C:\\", "SystemRoot=C:\\Windows"}
	for _, test := range []struct {
		name    string
		inherit bool
		windows bool
		set     []string
		want    []string
	}{
		{"named only", false, false, nil, []string{"PATH=/bin", "HOME=/root"}},
		{"set is added", false, false, []string{"A=1", "B="}, []string{"PATH=/bin", "HOME=/root", "A=1", "B="}},
		{"set wins", false, false, []string{"PATH=/opt"}, []string{"PATH=/opt", "HOME=/root"}},
		{"the later wins", false, false, []string{"A=1", "A=2"}, []string{"PATH=/bin", "HOME=/root", "A=2"}},
		{"inherit", true, false, []string{"HOME=/x"},
			[]string{"PATH=/bin", "TOKEN=secret", "HOME=/x", "path=/other", "Path=C:\\", "SystemRoot=C:\\Windows"}},
		{"windows", false, true, []string{"systemroot=D:\\"}, []string{"Path=C:\\", "systemroot=D:\\"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := environ(own, test.inherit, test.set, test.windows); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestEnvironReadsTheGatewaysOwn(t *testing.T) {
	t.Setenv("TZ", "Antarctica/Troll")
	t.Setenv("GATEWAY_SECRET", "s3cret")
	env := Environ(false, []string{"A=1"})
	if !slices.Contains(env, "TZ=Antarctica/Troll") || !slices.Contains(env, "A=1") || slices.Contains(env, "GATEWAY_SECRET=s3cret") {
		t.Errorf("got %q", env)
	}
	if env := Environ(true, nil); !slices.Contains(env, "GATEWAY_SECRET=s3cret") {
		t.Errorf("inherit gave %q", env)
	}
}
