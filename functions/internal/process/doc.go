// Package process runs one of the functions in a Lambda process: environment to
// services, standard output for metrics and logs, and the handler under
// Lambda's runtime loop. Clients are made when the process starts and make no
// call before the first request, so a cold start costs what the SDK costs.
package process
