// Package config is one struct and one table of keys. A key is an environment variable and a flag; a secret may also stand in
// a file that NAME_FILE names. A flag wins over the environment, that over the default.
package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Config is how a server or a command is set up.
type Config struct {
	Listen      string
	Data        string
	DatabaseURL string
	PublicURL   *url.URL
	Hosts       []string
	Origins     []string
	Proxies     []netip.Prefix
	ToolLimits  map[string]int
	Rate        int
	ExpiryDays  int
	UsageLogs   bool
	Debug       bool
	Token       string
	Server      string
	Metadata    bool           // client ID metadata documents are taken
	FetchAllow  []netip.Prefix // private networks that documents may be fetched from
	SMTP        string         // where mails are handed in; "" = none are sent
	MailFrom    string
	Embeddings  Embeddings
	MaxUpload   int64 // bytes of one file
	S3          S3

	given map[string]bool // keys set by flag or environment
}

// Embeddings is a model that embeds texts behind an endpoint of OpenAI's form. Without a URL the built-in one does.
type Embeddings struct{ URL, Key, Model string }

// S3 is a bucket that files are kept in. Without an endpoint they are kept in the data folder.
type S3 struct {
	Endpoint                      *url.URL // scheme and host
	Bucket, Region, KeyID, Secret string
}

// Key is one setting.
type Key struct {
	Name    string   // environment variable
	Others  []string // further names, read where Name is unset
	Flag    string   // "" = no flag of its own
	Default string
	Secret  bool
	Help    string
	set     func(c *Config, v string) error
}

// Keys is the table.
var Keys = []Key{
	{Name: "CAIRN_LISTEN", Flag: "listen", Default: "127.0.0.1:3000", Help: "address and port to listen on", set: func(c *Config, v string) error {
		if _, port, err := net.SplitHostPort(v); err != nil || !validPort(port, 0) {
			return fmt.Errorf("must be host:port, such as 127.0.0.1:3000")
		}
		c.Listen = v
		return nil
	}},
	{Name: "CAIRN_DATA", Flag: "data", Default: "./cairn-data", Help: "data folder", set: text(func(c *Config) *string { return &c.Data })},
	{Name: "CAIRN_DATABASE_URL", Flag: "database-url", Secret: true, Help: "postgres://... instead of SQLite in the data folder", set: func(c *Config, v string) error {
		if u, err := url.Parse(v); v != "" && (err != nil || u.Opaque != "" || u.Scheme != "postgres" && u.Scheme != "postgresql") {
			return fmt.Errorf("must be an address that begins with postgres:// (the value is not shown)")
		}
		c.DatabaseURL = v
		return nil
	}},
	{Name: "PUBLIC_URL", Others: []string{"SITE_URL"}, Flag: "public-url", Help: "how clients reach the server; http://<listen> by default", set: setPublicURL},
	{Name: "CAIRN_HOSTS", Flag: "hosts", Help: "further host names the server answers to, by commas", set: list(func(c *Config) *[]string { return &c.Hosts }, checkHost)},
	{Name: "CAIRN_CORS_ORIGINS", Flag: "cors-origins", Help: "further origins whose pages may call, by commas; the host may begin with *.", set: list(func(c *Config) *[]string { return &c.Origins }, checkOrigin)},
	{Name: "CAIRN_TRUSTED_PROXIES", Flag: "trusted-proxies", Default: "127.0.0.0/8,::1/128", Help: "proxies whose X-Forwarded-For counts, as addresses or ranges", set: prefixes(func(c *Config) *[]netip.Prefix { return &c.Proxies })},
	{Name: "CAIRN_CLIENT_METADATA", Flag: "client-metadata", Default: "false", Help: "let programs name themselves by the address of a document that the server fetches; only where it may reach the Internet", set: boolean(func(c *Config) *bool { return &c.Metadata })},
	{Name: "CAIRN_FETCH_ALLOW", Flag: "fetch-allow", Help: "private addresses or ranges that documents may be fetched from all the same", set: prefixes(func(c *Config) *[]netip.Prefix { return &c.FetchAllow })},
	{Name: "CAIRN_TOOL_LIMITS", Flag: "tool-limits", Help: "calls per minute of a tool, such as list_tasks=30,search=10", set: setToolLimits},
	{Name: "MCP_MAX_RATE_LIMIT", Flag: "max-rate-limit", Default: "60", Help: "calls per minute of a token without a rate of its own; 0 = no limit", set: number(0, 1_000_000, func(c *Config, n int) { c.Rate = n })},
	{Name: "MCP_DEFAULT_TOKEN_EXPIRY_DAYS", Flag: "default-token-expiry-days", Default: "90", Help: "how long a token lives by default", set: number(1, 36500, func(c *Config, n int) { c.ExpiryDays = n })},
	{Name: "MCP_ENABLE_USAGE_LOGS", Flag: "enable-usage-logs", Default: "true", Help: "keep a row per call for 30 days", set: boolean(func(c *Config) *bool { return &c.UsageLogs })},
	{Name: "MCP_DEBUG", Flag: "debug", Default: "false", Help: "log each request, and let pages from loopback call", set: boolean(func(c *Config) *bool { return &c.Debug })},
	{Name: "CAIRN_SMTP_URL", Flag: "smtp-url", Secret: true, Help: "mail server for sign-in codes: smtp://user:password@host:587 or smtps://", set: setSMTP},
	{Name: "CAIRN_MAIL_FROM", Flag: "mail-from", Help: "address that mails come from; needed with CAIRN_SMTP_URL", set: func(c *Config, v string) error {
		if _, err := mail.ParseAddress(v); v != "" && err != nil {
			return fmt.Errorf("must be an address such as cairn@example.org")
		}
		c.MailFrom = v
		return nil
	}},
	{Name: "CAIRN_EMBEDDINGS_URL", Flag: "embeddings-url", Help: "an endpoint of OpenAI's form that embeds texts, such as http://localhost:11434/v1, in place of the built-in model", set: func(c *Config, v string) error {
		if v == "" {
			return nil
		}
		u, err := webAddress(v)
		if err == nil && (u.User != nil || u.Fragment != "" || u.RawQuery != "") {
			err = fmt.Errorf("must hold no user, query or fragment: a key has a setting of its own")
		}
		c.Embeddings.URL = v
		return err
	}},
	{Name: "CAIRN_EMBEDDINGS_KEY", Flag: "embeddings-key", Secret: true, Help: "key of that endpoint", set: oneLine(func(c *Config) *string { return &c.Embeddings.Key })},
	{Name: "CAIRN_EMBEDDINGS_MODEL", Flag: "embeddings-model", Help: "name of the model at that endpoint", set: text(func(c *Config) *string { return &c.Embeddings.Model })},
	{Name: "CAIRN_MAX_UPLOAD", Flag: "max-upload", Default: "200MiB", Help: "the largest file that can be uploaded, in bytes or such as 500MB or 2GiB", set: func(c *Config, v string) (err error) {
		c.MaxUpload, err = bytes(v)
		return err
	}},
	{Name: "CAIRN_S3_ENDPOINT", Flag: "s3-endpoint", Help: "keep files in a bucket at this S3-compatible address, such as https://s3.example.org, instead of the data folder", set: setS3Endpoint},
	{Name: "CAIRN_S3_BUCKET", Flag: "s3-bucket", Help: "name of that bucket", set: func(c *Config, v string) error {
		if v != "" && !bucketName.MatchString(v) {
			return fmt.Errorf("must be the name of a bucket: 3 to 63 small letters, digits, hyphens and dots")
		}
		c.S3.Bucket = v
		return nil
	}},
	{Name: "CAIRN_S3_REGION", Flag: "s3-region", Default: "us-east-1", Help: "region of that bucket", set: func(c *Config, v string) error {
		if !hostName.MatchString(v) {
			return fmt.Errorf("must be the name of a region such as eu-central-1")
		}
		c.S3.Region = v
		return nil
	}},
	{Name: "CAIRN_S3_KEY_ID", Flag: "s3-key-id", Secret: true, Help: "id of the access key for that bucket", set: oneLine(func(c *Config) *string { return &c.S3.KeyID })},
	{Name: "CAIRN_S3_SECRET", Flag: "s3-secret", Secret: true, Help: "secret of that access key", set: oneLine(func(c *Config) *string { return &c.S3.Secret })},
	{Name: "CAIRN_TOKEN", Others: []string{"MINDSAI_API_KEY", "HEAPER_TOKEN"}, Flag: "token", Secret: true, Help: "token for the server that --server names", set: text(func(c *Config) *string { return &c.Token })},
	{Name: "CAIRN_SERVER", Flag: "server", Help: "work on this server instead of local data", set: func(c *Config, v string) error {
		if v == "" {
			return nil
		}
		if _, err := webAddress(v); err != nil {
			return err
		}
		c.Server = strings.TrimSuffix(strings.TrimSuffix(v, "/"), "/mcp")
		return nil
	}},
}

// Load reads flags (by flag name; only those given) and the environment. An error names the key at fault and fits one line.
func Load(flags map[string]string, env func(string) (string, bool)) (*Config, error) {
	c := &Config{given: map[string]bool{}}
	for _, k := range Keys {
		v, source := k.Default, ""
		for _, name := range append([]string{k.Name}, k.Others...) {
			got, err := fromEnv(k, name, env)
			if err != nil {
				return nil, err
			}
			if got != "" {
				v, source = got, name
				break
			}
		}
		if f, ok := flags[k.Flag]; ok && k.Flag != "" {
			v, source = f, "--"+k.Flag
		}
		if source != "" {
			c.given[k.Name] = true
		} else {
			source = k.Name
		}
		if err := k.set(c, v); err != nil {
			if !k.Secret && v != "" {
				return nil, fmt.Errorf("%s=%s: %w", source, strconv.Quote(v), err)
			}
			return nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	return c, c.finish()
}

func fromEnv(k Key, name string, env func(string) (string, bool)) (string, error) {
	if v, ok := env(name); ok && v != "" {
		return strings.TrimSpace(v), nil
	}
	if file, ok := env(name + "_FILE"); ok && file != "" && k.Secret {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_FILE: %w", name, err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	return "", nil
}

// Given tells whether a key was set by a flag or the environment.
func (c *Config) Given(name string) bool { return c.given[name] }

// finish sets what follows from other keys.
func (c *Config) finish() error {
	if c.PublicURL == nil {
		c.PublicURL = &url.URL{Scheme: "http", Host: c.Listen}
	}
	c.Origins = append([]string{"https://chatgpt.com", "https://chat.openai.com", "https://*.openai.com", "https://claude.ai"}, c.Origins...)
	if c.SMTP != "" && c.MailFrom == "" {
		return fmt.Errorf("CAIRN_SMTP_URL is set and CAIRN_MAIL_FROM is not: set it to the address that mails come from")
	}
	if c.Embeddings.URL != "" && c.Embeddings.Model == "" {
		return fmt.Errorf("CAIRN_EMBEDDINGS_URL is set and CAIRN_EMBEDDINGS_MODEL is not: set it to the model to ask for")
	}
	if set := c.S3.Endpoint != nil; set || c.S3.Bucket != "" || c.S3.KeyID != "" || c.S3.Secret != "" {
		for _, k := range []struct {
			name string
			ok   bool
		}{{"CAIRN_S3_ENDPOINT", set}, {"CAIRN_S3_BUCKET", c.S3.Bucket != ""}, {"CAIRN_S3_KEY_ID", c.S3.KeyID != ""}, {"CAIRN_S3_SECRET", c.S3.Secret != ""}} {
			if !k.ok {
				return fmt.Errorf("%s is not set, and other keys of a bucket are: set it too, or none of CAIRN_S3_ENDPOINT, _BUCKET, _KEY_ID and _SECRET", k.name)
			}
		}
	}
	return nil
}

// CheckServe refuses what a server must not be started with: an address that others reach without a name to check the Host
// header against.
func (c *Config) CheckServe() error {
	host, _, _ := net.SplitHostPort(c.Listen)
	a, err := netip.ParseAddr(host)
	loopback := host == "localhost" || err == nil && a.IsLoopback()
	if !loopback && !c.Given("PUBLIC_URL") && len(c.Hosts) == 0 {
		return fmt.Errorf("CAIRN_LISTEN=%q is open to other machines: set PUBLIC_URL or CAIRN_HOSTS to the name that clients use", c.Listen)
	}
	return nil
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v
		return nil
	}
}

// oneLine reads a secret that goes into a header.
func oneLine(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if strings.ContainsAny(v, "\r\n\x00") {
			return fmt.Errorf("must be one line (the value is not shown)")
		}
		*field(c) = v
		return nil
	}
}

func list(field func(*Config) *[]string, check func(string) error) func(*Config, string) error {
	return func(c *Config, v string) error {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			if check != nil {
				if err := check(part); err != nil {
					return err
				}
			}
			*field(c) = append(*field(c), part)
		}
		return nil
	}
}

func number(least, most int, set func(*Config, int)) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		set(c, n)
		return nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("must be true or false")
		}
		*field(c) = b
		return nil
	}
}

var hostName = regexp.MustCompile(`^(?i)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$`)

func validHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || hostName.MatchString(host)
}

func validPort(port string, least int) bool {
	n, err := strconv.Atoi(port)
	return err == nil && n >= least && n <= 65535
}

// webAddress reads an http or https address with a host that can be one.
func webAddress(v string) (*url.URL, error) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()) || u.Port() != "" && !validPort(u.Port(), 1) {
		return nil, fmt.Errorf("must be an address such as https://cairn.example.org")
	}
	return u, nil
}

func checkHost(v string) error {
	host := v
	if h, port, err := net.SplitHostPort(v); err == nil {
		if host = h; !validPort(port, 1) {
			host = ""
		}
	}
	if !validHost(strings.Trim(host, "[]")) {
		return fmt.Errorf("%q must be a host name such as cairn.example.org, with or without a port", v)
	}
	return nil
}

func checkOrigin(v string) error {
	u, err := webAddress(strings.Replace(v, "://*.", "://", 1))
	if err != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q must be an origin such as https://app.example.org or https://*.example.org", v)
	}
	return nil
}

func setPublicURL(c *Config, v string) error {
	if v == "" {
		return nil
	}
	u, err := webAddress(v)
	switch {
	case err != nil:
		return err
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("must have no user, query or fragment")
	case strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("must have no path: Cairn answers at the root of its host")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && !(port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http") {
		host += ":" + port
	}
	c.PublicURL = &url.URL{Scheme: u.Scheme, Host: host}
	return nil
}

func setSMTP(c *Config, v string) error {
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || !validHost(u.Hostname()) || u.Port() != "" && !validPort(u.Port(), 1)) {
		return fmt.Errorf("must be an address such as smtp://user:password@mail.example.org:587 (the value is not shown)")
	}
	c.SMTP = v
	return nil
}

// prefixes reads addresses and ranges of addresses.
func prefixes(field func(*Config) *[]netip.Prefix) func(*Config, string) error {
	return func(c *Config, v string) error {
		return list(func(*Config) *[]string { return new([]string) }, func(part string) error {
			p, err := netip.ParsePrefix(part)
			if err != nil {
				a, aerr := netip.ParseAddr(part)
				if aerr != nil {
					return fmt.Errorf("%q must be an address or a range such as 10.0.0.0/8", part)
				}
				p = netip.PrefixFrom(a, a.BitLen())
			}
			*field(c) = append(*field(c), p)
			return nil
		})(c, v)
	}
}

func setToolLimits(c *Config, v string) error {
	c.ToolLimits = map[string]int{}
	return list(func(*Config) *[]string { return new([]string) }, func(part string) error {
		name, n, ok := strings.Cut(part, "=")
		limit, err := strconv.Atoi(n)
		if !ok || err != nil || limit < 0 || name == "" {
			return fmt.Errorf("%q must be name=number", part)
		}
		c.ToolLimits[name] = limit
		return nil
	})(c, v)
}

var (
	byteCount  = regexp.MustCompile(`^([0-9]{1,15}) ?((?i:[kmg]i?)?[bB]?)$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// mostUpload bounds CAIRN_MAX_UPLOAD: what one object of a bucket can have.
const mostUpload = 5 << 40

// bytes reads a number of bytes: 1048576, 1024KiB, 1MiB or 1MB (a million).
func bytes(v string) (int64, error) {
	bad := fmt.Errorf("must be a number of bytes from 1 to 5 TiB, such as 1048576, 500MB or 2GiB")
	m := byteCount.FindStringSubmatch(v)
	if m == nil {
		return 0, bad
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := strings.TrimSuffix(strings.ToLower(m[2]), "b")
	by, ok := map[string]int64{"": 1, "k": 1e3, "ki": 1 << 10, "m": 1e6, "mi": 1 << 20, "g": 1e9, "gi": 1 << 30}[unit]
	if err != nil || !ok || n < 1 || n > mostUpload/by {
		return 0, bad
	}
	return n * by, nil
}

func setS3Endpoint(c *Config, v string) error {
	if v == "" {
		return nil
	}
	u, err := webAddress(v)
	switch {
	case err != nil:
		return fmt.Errorf("must be an address such as https://s3.example.org")
	case u.User != nil:
		return fmt.Errorf("must hold no user: the access key has settings of its own")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("must have no path, query or fragment: the bucket has a setting of its own")
	}
	c.S3.Endpoint = &url.URL{Scheme: u.Scheme, Host: u.Host}
	return nil
}
