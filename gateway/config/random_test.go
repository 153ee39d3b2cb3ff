package config

import "testing"

func TestRandom(t *testing.T) {
	for text, want := range map[string]bool{
		"aB3xK9mQ2vL7pT4wR8sZ": true, "prod-aB3xK9mQ2vL7pT4wR8sZ": true, "gpt-4o-mini-2024-07-18": false, "MyProject2024Production": false,
		"da39a3ee5e6b4b0d3255bfef95601890afd80709": false, "analytics2024prod": false, "aB3xK9mQ2": false, "": false,
		"ABCDEFGHIJ0123456789": false, "team-payments-prod1": false,
	} {
		if got := random(text); got != want {
			t.Errorf("random(%q) = %t", text, got)
		}
	}
}
