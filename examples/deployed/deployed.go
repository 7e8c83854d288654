// Package deployed tells the examples' tests and demonstrations where a deployed
// stack is: in the file of variables that localstack/deploy.sh writes.
package deployed

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// VarFile names the file; not set: there is no stack.
const VarFile = "CAIRN_STACK"

// Load puts the file's variables, and credentials that mean nothing, into this
// process's environment. Only a stack on loopback is taken, so that no
// demonstration ever reaches an account; ok false: no file is named.
func Load() (ok bool, err error) {
	path := os.Getenv(VarFile)
	if path == "" {
		return false, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	vars := map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			vars[name] = value
		}
	}
	if u, err := url.Parse(vars["AWS_ENDPOINT_URL"]); err != nil || u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" {
		return false, fmt.Errorf("%s: the endpoint is not on loopback", path)
	}
	for name, value := range vars {
		if err := os.Setenv(name, value); err != nil {
			return false, err
		}
	}
	return true, nil
}
