// Command documentcase is a bank's document-collection case, end to end: a
// customer is asked for three documents, sends them over several days, two
// reviewers look at them, and the customer is told.
//
// Workers and reviewers are processes of their own (this binary again, with a
// verb), and so is the mail gateway, which counts what it really sends. Time is
// virtual: a sandbox in this process keeps it, unless --endpoint names another.
// In the middle one worker is killed with SIGKILL at the worst moment: the
// gateway has sent a request to the customer, and nothing says so yet. The next
// worker goes on, and the customer gets no second mail.
//
// worker.go is the part to read: it is all that an agent's author writes.
package main
