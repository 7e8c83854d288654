// Package jsonx is exact JSON: what goes in as a token comes out as the same
// token, or is refused at the door with its path named.
//
// A Value is an immutable tree of the raw tokens of a JSON text. Numbers are
// never converted (1, 1.0 and 10000000000000000000999 stay what they are),
// strings and keys keep the escapes they were written with (\u0000 and lone
// surrogates included), members keep their order. Only insignificant white
// space is dropped.
//
// Refused by Parse: anything RFC 8259 does not allow, invalid UTF-8, a byte
// order mark, the same key twice in one object (compared as UTF-16 code units
// after unescaping), nesting beyond Limits.Depth and numbers whose written
// exponent is beyond Limits.Exponent.
//
// On that tree work JSON Patch (RFC 6902: ApplyPatch), JSON Merge Patch
// (RFC 7396: MergePatch), a differ whose patches restore the target token for
// token (Diff), and two texts to hash: AppendDigestForm, which ignores only the
// order of members, and AppendCanonical, which ignores every difference in
// spelling.
//
// All functions are pure and safe for concurrent use. A Value keeps the text it
// was parsed from alive, and trees made by a patch share nodes with the tree
// they were made from.
//
// Inside the package a string or key is compared in its decoded form: UTF-8 in
// which a lone surrogate takes the three bytes that UTF-8 proper forbids
// (WTF-8). Surrogate pairs are always joined, so two decoded forms are equal
// exactly when the UTF-16 code units are.
package jsonx
