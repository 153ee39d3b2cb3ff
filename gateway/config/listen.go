package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"mcp-gateway/auth"
)

func readListen(l *loader, c *Config, at place) { l.hostPort(at, &c.Listen) }

func readAdmin(l *loader, c *Config, at place) { l.hostPort(at, &c.Admin) }

// hostPort reads an address to listen on.
func (l *loader) hostPort(at place, into *string) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	if err := checkListen(v.text); err != nil {
		l.refuse(at, "%v %v", v, err)
		return
	}
	*into = v.text
}

func readAdminKey(l *loader, c *Config, at place) {
	stored, ok := l.text(at)
	if !ok {
		return
	}
	key, err := auth.ParseKey("admin", stored.text)
	if err != nil {
		l.secret(stored.text)
		l.refuse(at, "%v", err)
		return
	}
	c.AdminKey = auth.NewCallers(key)
}

func checkListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return errors.New("is not host:port, write one such as 127.0.0.1:8080")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return errors.New("has no port from 0 to 65535, write one such as 127.0.0.1:8080")
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName(host) {
		return errors.New("has a host that is neither a name nor an address")
	}
	return nil
}

// Loopback reports whether listen, a host:port, can be reached from this machine only.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && loopback(host)
}

// loopback reports whether host stays on this machine: 127.0.0.0/8, ::1, their IPv4-mapped forms, and localhost.
func loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func hostName(host string) bool {
	return host != "" && len(host) <= 253 && !strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	})
}

// readPath takes a plain path only, which clients write in one way.
func readPath(l *loader, c *Config, at place) {
	v, ok := l.text(at)
	if !ok {
		return
	}
	switch {
	case !strings.HasPrefix(v.text, "/"):
		l.refuse(at, "%v must begin with /, write one such as /mcp", v)
	case strings.Contains(v.text, "//") || strings.Contains(v.text+"/", "/../") || strings.Contains(v.text+"/", "/./"):
		l.refuse(at, "%v has an empty or dotted part, write one such as /mcp", v)
	case strings.ContainsFunc(v.text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}*?#%\\", r) }):
		l.refuse(at, "%v may have letters, digits and - . _ ~ only, beside its slashes", v)
	default:
		c.Path = v.text
	}
}

func readHosts(l *loader, c *Config, at place) {
	list, _ := l.texts(at)
	c.Hosts = make([]string, 0, len(list))
	for _, i := range list {
		host := i.value.text
		if name, port, err := net.SplitHostPort(host); err == nil {
			if _, err := strconv.ParseUint(port, 10, 16); err == nil {
				host = name
			}
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil && !hostName(host) {
			l.refuse(i.at, "%v is not a host, write it as in the Host header, such as mcp.example.com", i.value)
			continue
		}
		c.Hosts = append(c.Hosts, strings.ToLower(i.value.text))
	}
}

func readOrigins(l *loader, c *Config, at place) {
	list, _ := l.texts(at)
	c.Origins = make([]string, 0, len(list))
	for _, i := range list {
		u, err := url.Parse(i.value.text)
		switch {
		case i.value.text == "*" || i.value.text == "null":
			l.refuse(i.at, "%v would let any page in, name each origin", i.value)
		case err != nil || u.Scheme == "" || u.Host == "" || u.User != nil:
			l.refuse(i.at, "%v is not an origin, write one such as https://app.example.com", i.value)
		case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(i.value.text, "?") || strings.HasSuffix(i.value.text, "#"):
			l.refuse(i.at, "%v is more than an origin, end it after the host and port", i.value)
		default:
			c.Origins = append(c.Origins, strings.ToLower(i.value.text))
		}
	}
}
