// Package door is what every function does with a request before and after its
// one service call: it holds the invoked alias against the tenant, decodes,
// meters, encodes, and turns whatever went wrong into one of the closed set of
// error codes.
//
// # What it guarantees
//
//   - Nothing is read or written for a request whose form is wrong or whose
//     tenant the invoked alias does not speak for.
//   - The error that leaves is a Lambda error by value whose type is the code; a
//     panic is Internal, and neither its value nor an error's cause is shown or
//     logged, because they may hold agent data.
//   - Reply and error carry the cost as the meter saw it.
package door
