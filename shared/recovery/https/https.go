package https

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cairnstate/cairn/shared/recovery"
)

// MaxAnswer is how much of an answer is read, in bytes.
const MaxAnswer = 1 << 20

// Options of a resolver. Hosts, Key and Now are required.
type Options struct {
	// Hosts may be asked: "host" (port 443) or "host:port", compared without case.
	Hosts []string
	// Key signs the questions; at least 16 bytes.
	Key []byte
	// Now is the clock that stamps the questions.
	Now func() time.Time
	// Roots verify the answerers; nil: the system's.
	Roots *x509.CertPool
	// Refuse says which addresses are never connected to; nil: Forbidden.
	Refuse func(netip.Addr) bool
}

// Resolver asks over HTTPS. Safe for concurrent use.
type Resolver struct {
	hosts  []string
	key    []byte
	now    func() time.Time
	client *http.Client
}

var _ recovery.Resolver = (*Resolver)(nil)

// New makes a resolver; it makes no call.
func New(o Options) (*Resolver, error) {
	if len(o.Hosts) == 0 || len(o.Key) < 16 || o.Now == nil {
		return nil, errors.New("https: hosts, a key of at least 16 bytes and a clock are required")
	}
	refuse := o.Refuse
	if refuse == nil {
		refuse = Forbidden
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || refuse(at.Addr().Unmap()) {
			return errAddress
		}
		return nil
	}}
	r := &Resolver{key: slices.Clone(o.Key), now: o.Now, client: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 5 * time.Second,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, h := range o.Hosts {
		if u, err := url.Parse("https://" + h); err != nil || u.Host != h || u.Hostname() == "" {
			return nil, fmt.Errorf("https: %q is neither \"host\" nor \"host:port\"", h)
		}
		r.hosts = append(r.hosts, withPort(strings.ToLower(h)))
	}
	return r, nil
}

var (
	errAddress = errors.New("https: the address is not allowed")
	errTarget  = errors.New("https: the target is no allowed https URL")
	errAnswer  = errors.New("https: no answer")
)

// Forbidden addresses lead back into the machine or to its metadata, or to many.
func Forbidden(a netip.Addr) bool {
	return !a.IsValid() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a == metadata6 || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

var metadata6 = netip.MustParseAddr("fd00:ec2::254")

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "443")
}

// Ask implements recovery.Resolver. Errors name no URL and hold no answer.
func (r *Resolver) Ask(ctx context.Context, q recovery.Question) (recovery.Answer, error) {
	u, err := url.Parse(q.Config.Target)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Host == "" || !slices.Contains(r.hosts, withPort(strings.ToLower(u.Host))) {
		return recovery.Answer{}, errTarget
	}
	body, err := q.JSON()
	if err != nil {
		return recovery.Answer{}, errAnswer
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return recovery.Answer{}, errTarget
	}
	stamp := strconv.FormatInt(r.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "cairn")
	req.Header.Set("Cairn-Timestamp", stamp)
	req.Header.Set("Cairn-Signature", Sign(r.key, stamp, body))
	res, err := r.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return recovery.Answer{}, ctx.Err()
		}
		return recovery.Answer{}, errAnswer
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return recovery.Answer{}, fmt.Errorf("https: status %d", res.StatusCode)
	}
	// One byte more, so that whoever checks the answer sees that it is too long.
	b, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	if err != nil {
		if ctx.Err() != nil {
			return recovery.Answer{}, ctx.Err()
		}
		return recovery.Answer{}, errAnswer
	}
	return recovery.Answer{JSON: b}, nil
}

// Sign is the signature of a question, for answerers that verify it.
func Sign(key []byte, stamp string, body []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(stamp + "."))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}
