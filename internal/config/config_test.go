package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/config"
)

func load(flags, env map[string]string) (*config.Config, error) {
	return config.Load(flags, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
}

// bad values of every key; none = the key takes any text.
var bad = map[string][]string{
	"CAIRN_LISTEN": {"3000", "127.0.0.1", "[::1", "127.0.0.1:3000:1", "localhost", "127.0.0.1:http-alt-nonsense", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:", "http://127.0.0.1:3000"},
	"CAIRN_DATA":   nil,
	"CAIRN_DATABASE_URL": {"mysql://u:" + secret + "@h/d", "u:" + secret + "@h/d", "/var/" + secret, "postgres:" + secret, "host=h password=" + secret,
		"postgres://u:" + secret + "@h:port/d", "postgres://u:" + secret + "%zz@h/d", "postgres://u:" + secret + "@[::1/d"},
	"PUBLIC_URL": {"cairn.example.org", "//cairn.example.org", "ftp://cairn.example.org", "https://", "https://cairn.example.org/app", "https://cairn.example.org/mcp/", "https://cairn.example.org/?a=1", "https://cairn.example.org/#x",
		"https://u:p@cairn.example.org", "https://:3000", "https://cairn.example.org:99999", "https://cairn example.org", "javascript:alert(1)", "https://cairn.example.org:port", "https:cairn.example.org"},
	"CAIRN_HOSTS":           {"https://cairn.lan", "cairn.lan/x", "cairn lan", "*.cairn.lan", "a,https://b", "cairn.lan:port"},
	"CAIRN_CORS_ORIGINS":    {"app.example.net", "*", "https://", "ftp://app.example.net", "https://app.example.net/", "https://app.example.net/x", "https://*", "https://*example.net", "https://a.*.example.net", "https://app.example.net?x", "https://u@app.example.net", "https://a.example,nonsense", "null"},
	"CAIRN_CLIENT_METADATA": {"perhaps", "2"}, "CAIRN_FETCH_ALLOW": {"10.0.0", "localhost", "10.0.0.0/99"},
	"CAIRN_TRUSTED_PROXIES":         {"proxy.lan", "10.0.0.0/33", "10.0.0", "10.0.0.1-10.0.0.9", "127.0.0.1,nonsense", "*"},
	"CAIRN_TOOL_LIMITS":             {"list_tasks", "list_tasks=", "list_tasks=x", "list_tasks=-1", "=5", "list_tasks=1.5", "a=1,b", "list_tasks:5", "list_tasks=99999999999999999999"},
	"MCP_MAX_RATE_LIMIT":            {"-1", "x", "1.5", "60/min", "1000001", "99999999999999999999", "0x10"},
	"MCP_DEFAULT_TOKEN_EXPIRY_DAYS": {"0", "-1", "x", "90d", "36501", "never"},
	"MCP_ENABLE_USAGE_LOGS":         {"yes", "on", "2", "maybe"},
	"MCP_DEBUG":                     {"yes", "on", "2", "verbose"},
	"CAIRN_SMTP_URL":                {"mail.example.org:587", "http://u:" + secret + "@mail.example.org", "smtp://", "smtp://u:" + secret + "@:587", "smtp://u:" + secret + "@mail.example.org:99999", "smtp://u:" + secret + " x@h", "smtp:" + secret},
	"CAIRN_MAIL_FROM":               {"cairn", "@example.org", "a@b, c@d", "cairn@"},
	"CAIRN_EMBEDDINGS_URL":          {"localhost:11434", "ftp://host/v1", "https://", "https://u:p@host/v1", "https://host/v1#x", "https://host/v1?key=x", "https://host:port/v1"},
	"CAIRN_EMBEDDINGS_KEY":          {secret + "\n" + secret, secret + "\x00" + secret},
	"CAIRN_EMBEDDINGS_MODEL":        nil,
	"CAIRN_MAX_UPLOAD":              {"0", "-1", "x", "1.5MiB", "200 miles", "1TB", "MiB", "99999999999999999999", "9999999999GiB", "0x10"},
	"CAIRN_S3_ENDPOINT":             {"s3.example.org", "s3://bucket", "https://", "https://s3.example.org/bucket", "https://k:s@s3.example.org", "https://s3.example.org?x=1", "https://s3.example.org:port"},
	"CAIRN_S3_BUCKET":               {"a", "With Capitals", "a/b", "-begins", "ends-", "ünicode", strings.Repeat("x", 64)},
	"CAIRN_S3_REGION":               {"eu central", "eu/1", "https://x"},
	"CAIRN_S3_KEY_ID":               {secret + "\n" + secret, secret + "\x00" + secret},
	"CAIRN_S3_SECRET":               {secret + "\n" + secret, secret + "\x00" + secret},
	"CAIRN_TOKEN":                   nil,
	"CAIRN_SERVER":                  {"cairn.example.org", "ftp://cairn.example.org", "https://", "//x", "https://:3000", "https://cairn.example.org:port"},
}

const secret = "s3cretvalue"

func TestBadValueStopsWithOneLineThatNamesTheKey(t *testing.T) {
	for _, k := range config.Keys {
		values, known := bad[k.Name]
		if !known {
			t.Errorf("%s has no bad values here", k.Name)
		}
		for _, v := range values {
			t.Run(k.Name+"/"+v, func(t *testing.T) {
				check := func(name string, flags, env map[string]string) {
					_, err := load(flags, env)
					if err == nil {
						t.Errorf("%s is taken", name)
						return
					}
					if line := err.Error(); !strings.Contains(line, name) || strings.ContainsAny(line, "\n\r") || strings.Contains(line, secret) || len(line) > 300 {
						t.Errorf("%s: %s", name, line)
					}
				}
				for _, name := range append([]string{k.Name}, k.Others...) {
					check(name, nil, map[string]string{name: v})
				}
				if k.Flag != "" {
					check("--"+k.Flag, map[string]string{k.Flag: v}, nil)
				}
				if k.Secret {
					file := filepath.Join(t.TempDir(), "secret")
					if err := os.WriteFile(file, []byte(v+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					check(k.Name, nil, map[string]string{k.Name + "_FILE": file})
				}
			})
		}
	}
}

func TestGoodValues(t *testing.T) {
	for name, values := range map[string][]string{
		"CAIRN_LISTEN":          {"127.0.0.1:0", ":3000", "[::1]:3000", "localhost:3000", "0.0.0.0:80", "127.0.0.1:65535"},
		"CAIRN_DATABASE_URL":    {"postgres://u:p@h:5432/d?sslmode=disable", "postgresql://h/d", "postgres:///d?host=/run/postgresql"},
		"PUBLIC_URL":            {"https://cairn.example.org", "http://10.0.0.5:3000", "http://[::1]:3000", "https://xn--bcher-kva.example"},
		"CAIRN_HOSTS":           {"cairn.lan", "cairn.lan, 10.0.0.5", "cairn.lan:8080", "[2001:db8::1]", "", ","},
		"CAIRN_CORS_ORIGINS":    {"https://app.example.net", "http://localhost:5173", "https://*.example.net", "https://a.example, https://b.example:8443"},
		"CAIRN_TRUSTED_PROXIES": {"10.0.0.0/8", "10.0.0.1", "::1,2001:db8::/32", "10.0.0.1, 10.0.0.2"},
		"CAIRN_TOOL_LIMITS":     {"list_tasks=30,search=10", "list_tasks=0", " list_tasks=30 , search=10 "},
		"CAIRN_MAX_UPLOAD":      {"1", "1048576", "500MB", "2GiB", "64 kib", "100m", " 10MiB "},
		"MCP_MAX_RATE_LIMIT":    {"0", "1", "1000000", " 60 "}, "MCP_DEBUG": {"true", "false", "1", "0", "TRUE"},
		"CAIRN_SERVER": {"https://cairn.example.org", "https://cairn.example.org/mcp", "http://127.0.0.1:3000/"},
	} {
		for _, v := range values {
			if _, err := load(nil, map[string]string{name: v}); err != nil {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
	}
}

// What is public is one text everywhere, however it was written (CASES 44 c).
func TestPublicURLHasOneForm(t *testing.T) {
	for given, want := range map[string]string{
		"https://cairn.example.org": "https://cairn.example.org", "https://cairn.example.org/": "https://cairn.example.org", "https://cairn.example.org//": "https://cairn.example.org",
		"HTTPS://Cairn.Example.ORG": "https://cairn.example.org", "https://cairn.example.org:443/": "https://cairn.example.org", "http://cairn.example.org:80": "http://cairn.example.org",
		"https://cairn.example.org:8443": "https://cairn.example.org:8443", "http://cairn.example.org:443": "http://cairn.example.org:443", "https://cairn.example.org:": "https://cairn.example.org",
		"https://[2001:DB8::1]:443": "https://[2001:db8::1]", "https://[2001:DB8::1]:8443": "https://[2001:db8::1]:8443", "http://[::1]:80/": "http://[::1]",
		" https://cairn.example.org ": "https://cairn.example.org", "https://cairn.example.org/?": "https://cairn.example.org",
	} {
		if c, err := load(nil, map[string]string{"PUBLIC_URL": given}); err != nil || c.PublicURL.String() != want {
			t.Errorf("%q: %v, %v, want %s", given, c.PublicURL, err, want)
		}
	}
	c, err := load(nil, map[string]string{"CAIRN_LISTEN": "127.0.0.1:4000"})
	if err != nil || c.PublicURL.String() != "http://127.0.0.1:4000" || c.Given("PUBLIC_URL") {
		t.Errorf("by default: %v, %v", c.PublicURL, err)
	}
}

func TestOtherNamesAndTheirOrder(t *testing.T) {
	url := func(c *config.Config) string { return c.PublicURL.String() }
	token := func(c *config.Config) string { return c.Token }
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("  from-file \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type set = map[string]string
	for _, c := range []struct {
		flags, env set
		get        func(*config.Config) string
		want       string
	}{
		{nil, set{"SITE_URL": "https://site.example"}, url, "https://site.example"},
		{nil, set{"SITE_URL": "https://site.example", "PUBLIC_URL": "https://public.example"}, url, "https://public.example"},
		{nil, set{"SITE_URL": "https://site.example", "PUBLIC_URL": ""}, url, "https://site.example"},
		{set{"public-url": "https://flag.example"}, set{"PUBLIC_URL": "https://public.example"}, url, "https://flag.example"},
		{nil, set{"MINDSAI_API_KEY": "m"}, token, "m"}, {nil, set{"HEAPER_TOKEN": "h"}, token, "h"},
		{nil, set{"MINDSAI_API_KEY": "m", "HEAPER_TOKEN": "h"}, token, "m"}, {nil, set{"CAIRN_TOKEN": "c", "MINDSAI_API_KEY": "m"}, token, "c"},
		{nil, set{"CAIRN_TOKEN_FILE": file}, token, "from-file"}, {nil, set{"HEAPER_TOKEN_FILE": file}, token, "from-file"}, {nil, set{"CAIRN_TOKEN": "c", "CAIRN_TOKEN_FILE": file}, token, "c"},
		{set{"token": "f"}, set{"CAIRN_TOKEN": "c"}, token, "f"}, {nil, set{"CAIRN_TOKEN_FILE": ""}, token, ""},
	} {
		got, err := load(c.flags, c.env)
		if err != nil || c.get(got) != c.want {
			t.Errorf("%v %v: %v, want %s", c.flags, c.env, err, c.want)
		}
	}
	for _, env := range []set{{"CAIRN_TOKEN_FILE": file + ".gone"}, {"CAIRN_DATABASE_URL_FILE": filepath.Dir(file)}, {"MINDSAI_API_KEY_FILE": "/nonexistent/x"}} {
		for name := range env {
			if _, err := load(nil, env); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: %v", env, err)
			}
		}
	}
	if c, err := load(nil, set{"MCP_DEBUG_FILE": file}); err != nil || c.Debug { // secrets alone stand in files
		t.Errorf("MCP_DEBUG_FILE: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	c, err := load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3000" || c.Data != "./cairn-data" || c.DatabaseURL != "" || c.Rate != 60 || c.ExpiryDays != 90 || !c.UsageLogs || c.Debug || len(c.Hosts) > 0 || len(c.ToolLimits) > 0 {
		t.Errorf("%+v", c)
	}
	if got := c.Proxies; len(got) != 2 || got[0].String() != "127.0.0.0/8" || got[1].String() != "::1/128" {
		t.Errorf("trusted proxies %v", got)
	}
	if want := []string{"https://chatgpt.com", "https://chat.openai.com", "https://*.openai.com", "https://claude.ai"}; !slices.Equal(c.Origins, want) {
		t.Errorf("origins %v", c.Origins)
	}
	if c, err = load(nil, map[string]string{"CAIRN_CORS_ORIGINS": "https://a.example"}); err != nil || !slices.Contains(c.Origins, "https://claude.ai") || !slices.Contains(c.Origins, "https://a.example") {
		t.Errorf("further origins: %v, %v", c.Origins, err)
	}
}

// A server that other machines reach needs a name to hold the Host header against.
func TestOpenAddressNeedsAName(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:3000", ":3000", "[::]:3000", "10.0.0.5:3000", "cairn.lan:3000"} {
		c, err := load(nil, map[string]string{"CAIRN_LISTEN": listen})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckServe(); err == nil || !strings.Contains(err.Error(), "CAIRN_LISTEN") || !strings.Contains(err.Error(), "PUBLIC_URL") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", listen, err)
		}
		for name, v := range map[string]string{"PUBLIC_URL": "https://cairn.example.org", "SITE_URL": "https://cairn.example.org", "CAIRN_HOSTS": "cairn.lan"} {
			c, err := load(nil, map[string]string{"CAIRN_LISTEN": listen, name: v})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.CheckServe(); err != nil {
				t.Errorf("%s with %s: %v", listen, name, err)
			}
		}
	}
	for _, listen := range []string{"127.0.0.1:3000", "127.0.0.2:3000", "[::1]:3000", "localhost:3000"} {
		c, err := load(nil, map[string]string{"CAIRN_LISTEN": listen})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckServe(); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

func TestMailNeedsASender(t *testing.T) {
	const server = "smtps://u:" + secret + "@mail.example.org"
	if _, err := load(nil, map[string]string{"CAIRN_SMTP_URL": server}); err == nil || !strings.Contains(err.Error(), "CAIRN_MAIL_FROM") || strings.Contains(err.Error(), secret) {
		t.Errorf("without an address: %v", err)
	}
	c, err := load(nil, map[string]string{"CAIRN_SMTP_URL": server, "CAIRN_MAIL_FROM": "Cairn <cairn@example.org>"})
	if err != nil || c.SMTP != server || c.MailFrom != "Cairn <cairn@example.org>" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestEmbeddingsNeedAModel(t *testing.T) {
	env := map[string]string{"CAIRN_EMBEDDINGS_URL": "http://localhost:11434/v1", "CAIRN_EMBEDDINGS_KEY": secret}
	if _, err := load(nil, env); err == nil || !strings.Contains(err.Error(), "CAIRN_EMBEDDINGS_MODEL") || strings.Contains(err.Error(), secret) {
		t.Errorf("without a model: %v", err)
	}
	env["CAIRN_EMBEDDINGS_MODEL"] = "m"
	if c, err := load(nil, env); err != nil || c.Embeddings != (config.Embeddings{URL: "http://localhost:11434/v1", Key: secret, Model: "m"}) {
		t.Errorf("%v", err)
	}
}

func TestBucketNeedsAllItsKeys(t *testing.T) {
	whole := map[string]string{"CAIRN_S3_ENDPOINT": "https://s3.example.org", "CAIRN_S3_BUCKET": "cairn-files", "CAIRN_S3_KEY_ID": "id", "CAIRN_S3_SECRET": secret}
	for missing := range whole {
		env := map[string]string{}
		for k, v := range whole {
			if k != missing {
				env[k] = v
			}
		}
		if _, err := load(nil, env); err == nil || !strings.HasPrefix(err.Error(), missing) || strings.Contains(err.Error(), secret) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	c, err := load(nil, whole)
	if err != nil || c.S3.Endpoint.String() != "https://s3.example.org" || c.S3.Bucket != "cairn-files" || c.S3.Region != "us-east-1" || c.S3.KeyID != "id" || c.S3.Secret != secret {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestMaxUploadHasUnits(t *testing.T) {
	for v, want := range map[string]int64{"": 200 << 20, "1": 1, "500MB": 5e8, "2GiB": 2 << 30, "64 kib": 64 << 10, "7k": 7000} {
		if c, err := load(nil, map[string]string{"CAIRN_MAX_UPLOAD": v}); err != nil || c.MaxUpload != want {
			t.Errorf("%q: %+v, %v, want %d", v, c, err, want)
		}
	}
}
