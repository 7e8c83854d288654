// Command recover is the recover function's Lambda process.
package main

import (
	"github.com/cairnstate/cairn/functions/internal/doors"
	"github.com/cairnstate/cairn/functions/internal/process"
	"github.com/cairnstate/cairn/shared/api"
)

func main() { process.Start(api.Recover, doors.Open) }
