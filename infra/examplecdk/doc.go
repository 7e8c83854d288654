// Package examplecdk puts the deployed examples beside a Cairn: the document case
// as a state machine with its desk (examples/stepfunctions) and the agent
// function (examples/agentlambda), each with a table of its own business.
//
// It shows what an app of one's own needs: fixed names, so that Cairn's recover
// function may start the targets without depending on them; plain grants
// (AllowTrusted, AllowTool); and explicit statements for the rest.
package examplecdk
