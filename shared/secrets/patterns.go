package secrets

import (
	"encoding/base64"
	"math/bits"
	"regexp"
	"strings"
)

// pattern is a form that only credentials have. Any of the triggers must occur
// before the expression is tried; also, where there is one, must agree with what
// was found (the first group, or all of it).
type pattern struct {
	kind     string
	triggers []string
	// head, where there is one, is what every find begins with, at the beginning of
	// a word; expr is tried at its places only, and anchored.
	head string
	expr *regexp.Regexp
	also func(found string) bool
}

func form(kind, expr string, also func(string) bool, triggers ...string) pattern {
	p := pattern{kind: kind, triggers: triggers, also: also}
	if rest, ok := strings.CutPrefix(expr, `\b`+regexp.QuoteMeta(triggers[0])); ok && len(triggers) == 1 {
		p.head, expr = triggers[0], `\A`+regexp.QuoteMeta(triggers[0])+rest
	}
	p.expr = regexp.MustCompile(expr)
	return p
}

var patterns = []pattern{
	form("private_key", `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[\s\S]*)`, nil, "PRIVATE KEY"),
	form("aws_access_key", `\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`, nil, "AKIA", "ASIA"),
	form("aws_secret_key", `(?i)\baws[a-z_ .-]{0,12}secret[a-z_ .-]{0,16}["']?\s*[:=]\s*["']?([A-Za-z0-9/+]{40})\b`, mixed, "ecret", "ECRET"),
	form("google_key", `\bAIza[0-9A-Za-z_-]{35}`, nil, "AIza"),
	form("google_token", `\bya29\.[0-9A-Za-z_-]{20,}`, nil, "ya29."),
	form("google_client_secret", `\bGOCSPX-[0-9A-Za-z_-]{20,}`, nil, "GOCSPX-"),
	form("azure_storage_key", `(?i)\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}`, nil, "ountKey=", "ountkey=", "OUNTKEY="),
	form("azure_sas", `[?&]sig=[A-Za-z0-9%+/]{40,}`, mixed, "sig="),
	form("github_token", `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})`, nil, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	form("gitlab_token", `\bgl(?:pat|rt|dt|ptt)-[A-Za-z0-9_-]{20,}`, mixed, "glpat-", "glrt-", "gldt-", "glptt-"),
	form("slack_token", `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`, digits, "xox"),
	form("slack_webhook", `\bhooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,}`, nil, "hooks.slack.com"),
	form("stripe_key", `\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{20,})`, nil, "k_live_", "k_test_", "whsec_"),
	form("model_key", `\bsk-(?:[A-Za-z0-9_]+-)*[A-Za-z0-9_]{16,}(?:[A-Za-z0-9_-]*)`, mixed, "sk-"),
	form("huggingface_token", `\bhf_[A-Za-z0-9]{30,}\b`, nil, "hf_"),
	form("npm_token", `\bnpm_[A-Za-z0-9]{36}\b`, nil, "npm_"),
	form("pypi_token", `\bpypi-AgEI[A-Za-z0-9_-]{40,}`, nil, "pypi-"),
	form("sendgrid_key", `\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`, nil, "SG."),
	form("twilio_key", `\bSK[0-9a-f]{32}\b`, nil, "SK"),
	form("databricks_token", `\bdapi[0-9a-f]{32}\b`, nil, "dapi"),
	form("digitalocean_token", `\bdo[opr]_v1_[0-9a-f]{64}\b`, nil, "_v1_"),
	form("shopify_token", `\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b`, nil, "shpat_", "shpca_", "shppa_", "shpss_"),
	form("jwt", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, nil, "eyJ"),
	form("bearer_token", `(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)`, digits, "earer", "EARER"),
	form("basic_authorization", `(?i)\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})`, userPassword, "asic ", "ASIC "),
	form("url_password", `\b[A-Za-z][A-Za-z0-9+.-]{1,24}://[^\s/?#:@"'<>]*:([^\s/?#@"'<>]{3,})@[^\s/?#@"'<>]`, actual, "://"),
	form("connection_string_password", `(?i)(?:\b(?:server|data source|host|user id|uid|user|username|database|initial catalog|endpoint)\s*=[^;]*;(?:[^;]*;)*?\s*)(?:password|pwd)\s*=\s*([^;\s"']{4,})`, connection, "assword", "ASSWORD", "wd=", "WD="),
	form("connection_string_password", `(?i)\b(?:password|pwd)\s*=\s*([^;\s"']{4,});\s*(?:[^;]*;\s*)*?(?:server|data source|host|user id|uid|database|initial catalog)\s*=`, connection, "assword", "ASSWORD", "wd=", "WD="),
}

func digits(s string) bool { return strings.ContainsAny(s, "0123456789") }

// mixed: digits and letters in one long run, as words joined by hyphens are not.
func mixed(s string) bool {
	for _, run := range strings.FieldsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		if len(run) >= 16 && digits(run) && strings.ContainsAny(run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			return true
		}
	}
	return false
}

// userPassword: base64 of user:password.
func userPassword(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return false
	}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	user, password, ok := strings.Cut(string(b), ":")
	return ok && user != "" && len(password) >= 3
}

// connection: what stands for a password there, and is no path.
func connection(s string) bool { return actual(s) && s[0] != '/' && s[0] != '\\' }

// actual: no placeholder and no reference.
func actual(s string) bool { return !placeholder(s) && !reference(s) }

// placeholder reports what stands where a credential would: dots and stars,
// <angle brackets>, words that say so.
func placeholder(s string) bool {
	t := strings.ToLower(strings.TrimSpace(s))
	if t == "" || strings.Trim(t, string(t[0])) == "" {
		return true // one character again and again
	}
	if t[0] == '<' && t[len(t)-1] == '>' || t[0] == '[' && t[len(t)-1] == ']' || t[0] == '%' && t[len(t)-1] == '%' {
		return true
	}
	if strings.Contains(t, "***") || strings.HasPrefix(t, "xxxx") || strings.HasPrefix(t, "....") || strings.Contains(t, "\u2022\u2022") {
		return true
	}
	switch strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, t) {
	case "password", "passwd", "secret", "changeme", "redacted", "masked", "hidden", "none", "null", "empty", "unset", "notset", "unknown", "required", "optional",
		"string", "text", "true", "false", "example", "placeholder", "yourpassword", "yourapikey", "yourtoken", "yoursecret", "apikey", "token", "encrypted", "invalid", "incorrect", "missing", "expired":
		return true
	}
	return false
}

// reference reports a string that names a place in a secret store.
func reference(s string) bool {
	t := strings.ToLower(s)
	for _, p := range []string{"arn:aws:secretsmanager:", "arn:aws:ssm:", "arn:aws-", "secretsmanager:", "ssm:", "vault:", "op://", "env:", "file:", "keyring:", "secret://", "secret_ref:",
		"{{resolve:", "${", "$(", "{{", "gcp-secret:", "sm://"} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return strings.HasPrefix(t, "projects/") && strings.Contains(t, "/secrets/") || strings.HasPrefix(t, "https://") && strings.Contains(t, ".vault.azure.net/secrets/")
}

// credentialNames are names that only credentials have, without case, '_' and
// '-'.
var credentialNames = map[string]bool{
	"password": true, "passwd": true, "passphrase": true, "userpassword": true, "dbpassword": true, "databasepassword": true, "adminpassword": true,
	"apikey": true, "xapikey": true, "apisecret": true, "apitoken": true, "secretkey": true, "secretaccesskey": true, "awssecretaccesskey": true, "awssessiontoken": true,
	"clientsecret": true, "accesstoken": true, "refreshtoken": true, "authtoken": true, "bearertoken": true, "privatekey": true, "signingkey": true, "encryptionkey": true,
	"openaiapikey": true, "anthropicapikey": true, "githubtoken": true, "gitlabtoken": true, "slacktoken": true, "stripeapikey": true, "npmtoken": true, "webhooksecret": true,
}

// plainName is a name as it is compared.
func plainName(s string) string {
	if len(s) > 64 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == ' ' || r == '.':
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// secretText reports whether a text under a credential's name is one: long
// enough, of one piece, neither placeholder nor reference.
func secretText(s string) bool {
	return len(s) >= 6 && !strings.ContainsAny(s, " \t\r\n") && actual(s)
}

// span is a part of a text that must not be stored.
type span struct {
	from, to int
	kind     string
}

// triggers are tried at a place of a text by the two bytes that stand there:
// one pass over a text tells which patterns can occur in it at all.
type trigger struct {
	text    string
	pattern int
}

var byPair, pairs = index()

// index sorts the triggers; pairs has a bit for each pair, small enough for the
// fastest memory there is.
func index() (by map[uint16][]trigger, pairs *[1 << 10]uint64) {
	if len(patterns) > 64 {
		panic("secrets: more patterns than bits")
	}
	by, pairs = map[uint16][]trigger{}, new([1 << 10]uint64)
	for i, p := range patterns {
		for _, t := range p.triggers {
			pair := uint16(t[0])<<8 | uint16(t[1])
			by[pair] = append(by[pair], trigger{t, i})
			pairs[pair>>6] |= 1 << (pair & 63)
		}
	}
	return by, pairs
}

// possible gives the patterns whose triggers occur, as bits.
func possible(s string) (set uint64) {
	for i := 0; i+1 < len(s); i++ {
		pair := uint16(s[i])<<8 | uint16(s[i+1])
		if pairs[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		for _, t := range byPair[pair] {
			if strings.HasPrefix(s[i:], t.text) {
				set |= 1 << t.pattern
			}
		}
	}
	return set
}

// find gives the first credential in a text from an offset on.
func find(s string, from int) (span, bool) {
	best := span{from: len(s) + 1}
	if len(s)-from < 8 {
		return best, false
	}
	for set := possible(s[from:]); set != 0; set &= set - 1 {
		p := &patterns[bits.TrailingZeros64(set)]
		if lo, hi, ok := p.find(s, from); ok && lo < best.from {
			best = span{lo, hi, p.kind}
		}
	}
	return best, best.from <= len(s)
}

// find gives the first place from an offset on that the pattern agrees with.
func (p *pattern) find(s string, from int) (lo, hi int, ok bool) {
	for at := from; at < len(s); {
		if p.head != "" { // long texts of encoded bytes have many heads and no credential
			i := strings.Index(s[at:], p.head)
			if i < 0 {
				return 0, 0, false
			}
			if at += i; at > 0 && wordByte(s[at-1]) {
				at++
				continue
			}
		}
		m := p.expr.FindStringSubmatchIndex(s[at:])
		if m == nil && p.head != "" {
			at++
			continue
		}
		if m == nil {
			return 0, 0, false
		}
		lo, hi = at+m[0], at+m[1]
		if len(m) > 2 && m[2] >= 0 {
			lo, hi = at+m[2], at+m[3]
		}
		if (p.also == nil || p.also(s[lo:hi])) && !insideData(s, at+m[0], at+m[1]) {
			return lo, hi, true
		}
		at += max(m[0]+1, 1)
	}
	return 0, 0, false
}

// dataRun is how far encoded bytes must go on beside a find to be what it is
// part of: no key has as much stuck to it, and in megabytes of encoded pictures
// every short form occurs by chance.
const dataRun = 64

// insideData reports a find in the middle of base64 or hex text.
func insideData(s string, lo, hi int) bool {
	before, after := lo, hi
	for before > 0 && lo-before < dataRun && dataByte(s[before-1]) {
		before--
	}
	for after < len(s) && after-hi < dataRun && dataByte(s[after]) {
		after++
	}
	return lo-before >= dataRun || after-hi >= dataRun
}

func dataByte(c byte) bool { return wordByte(c) || c == '+' || c == '/' || c == '-' || c == '=' }

// wordByte: what makes \b no boundary before a head.
func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
