// Command retention is the retention function's Lambda process.
package main

import (
	"github.com/cairnstate/cairn/functions/internal/process"
	"github.com/cairnstate/cairn/shared/api"
)

func main() { process.Start(api.Retention) }
