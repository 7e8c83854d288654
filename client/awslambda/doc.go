// Package awslambda is the client's door through the AWS SDK's Lambda client: to
// a deployed stack, a local AWS engine or a sandbox. It stands by itself so that
// a program which uses another door links no SDK.
package awslambda
