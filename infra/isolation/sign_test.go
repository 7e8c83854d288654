package isolation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// sign puts Signature Version 4 on a request. (This module has no AWS SDK, and
// one in it would cost every user of the construct.)
func sign(r *http.Request, body string, who credentials, service string, at time.Time) {
	stamp := at.UTC().Format("20060102T150405Z")
	digest := hexSHA256(body)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", digest)
	if who.token != "" {
		r.Header.Set("X-Amz-Security-Token", who.token)
	}
	headers := map[string]string{"host": r.URL.Host}
	for name := range r.Header {
		headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	var names []string
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + canonicalPath(r.URL, service) + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + strings.TrimSpace(headers[name]) + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + digest)

	scope := stamp[:8] + "/us-east-1/" + service + "/aws4_request"
	key := []byte("AWS4" + who.secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hexSHA256(canonical.String())))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who.key+"/"+scope+", SignedHeaders="+signed+", Signature="+signature)
}

// canonicalPath: S3 takes the path as it was sent, the others escaped once more.
func canonicalPath(u *url.URL, service string) string {
	path := u.EscapedPath()
	if service == "s3" {
		return path
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return strings.Join(parts, "/")
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for key, values := range query {
		for _, value := range values {
			pairs = append(pairs, escape(key)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape leaves only the unreserved characters of RFC 3986.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSHA256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
