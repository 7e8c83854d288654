package store

// Cond is a condition on one item, evaluated atomically with the write it
// guards. A nil Cond always holds. A comparison with an attribute that is
// absent or of another kind does not hold (as in DynamoDB).
type Cond interface{ cond() }

type (
	// Compare holds when the attribute stands in relation Op to Value.
	Compare struct {
		Attr  string
		Op    Op
		Value Value
	}
	// Present holds when the attribute exists.
	Present struct{ Attr string }
	// Absent holds when the attribute does not exist; on AttrPK: when the item
	// does not exist.
	Absent struct{ Attr string }
	// Contains holds when a string set holds the value.
	Contains struct{ Attr, Value string }
	// All holds when every part holds; an empty All holds.
	All []Cond
	// Any holds when one part holds; an empty Any does not.
	Any []Cond
	// Not negates.
	Not struct{ Cond Cond }
)

// Op is a comparison: =, <>, <, <=, > or >=.
type Op string

// The comparisons.
const (
	EQ Op = "="
	NE Op = "<>"
	LT Op = "<"
	LE Op = "<="
	GT Op = ">"
	GE Op = ">="
)

func (Compare) cond()  {}
func (Present) cond()  {}
func (Absent) cond()   {}
func (Contains) cond() {}
func (All) cond()      {}
func (Any) cond()      {}
func (Not) cond()      {}

// Eq is Compare{attr, EQ, v}.
func Eq(attr string, v Value) Cond { return Compare{attr, EQ, v} }

// NotThere holds when the item does not exist.
func NotThere() Cond { return Absent{AttrPK} }

// There holds when the item exists.
func There() Cond { return Present{AttrPK} }

// Action changes one attribute in an update.
type Action interface{ action() }

type (
	// Set gives the attribute a value.
	Set struct {
		Attr  string
		Value Value
	}
	// Remove takes the attribute away.
	Remove struct{ Attr string }
	// Add adds to a number (an absent one counts as 0).
	Add struct {
		Attr string
		N    int64
	}
	// AddToSet puts strings into a set (an absent one counts as empty).
	AddToSet struct {
		Attr   string
		Values []string
	}
	// RemoveFromSet takes strings out of a set; the attribute goes with the last.
	RemoveFromSet struct {
		Attr   string
		Values []string
	}
)

func (Set) action()           {}
func (Remove) action()        {}
func (Add) action()           {}
func (AddToSet) action()      {}
func (RemoveFromSet) action() {}
