package dynamo

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cairnstate/cairn/shared/store"
)

// errForm is a value, condition or query that cannot be said to DynamoDB, or an
// attribute of a kind that the port does not have.
var errForm = errors.New("no such form")

type attributes = map[string]types.AttributeValue

func toKey(k store.Key) attributes {
	return attributes{
		store.AttrPK: &types.AttributeValueMemberS{Value: k.PK},
		store.AttrSK: &types.AttributeValueMemberS{Value: k.SK},
	}
}

// toItem maps an item; zero Values are attributes that are not there.
func toItem(it store.Item) (attributes, error) {
	out := make(attributes, len(it))
	for name, v := range it {
		if v.Kind == store.KindInvalid {
			continue
		}
		av, err := toValue(v)
		if err != nil {
			return nil, err
		}
		out[name] = av
	}
	return out, nil
}

func toValue(v store.Value) (types.AttributeValue, error) {
	switch v.Kind {
	case store.KindS:
		if !utf8.ValidString(v.S) { // JSON would carry it changed
			return nil, errForm
		}
		return &types.AttributeValueMemberS{Value: v.S}, nil
	case store.KindN:
		return &types.AttributeValueMemberN{Value: v.S}, nil
	case store.KindB:
		if v.B == nil {
			return &types.AttributeValueMemberB{Value: []byte{}}, nil // nil would be left out of the request
		}
		return &types.AttributeValueMemberB{Value: v.B}, nil
	case store.KindBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Bool}, nil
	case store.KindNULL:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case store.KindSS:
		return toSet(v.SS)
	case store.KindNS:
		return &types.AttributeValueMemberNS{Value: v.SS}, nil
	case store.KindBS:
		set := make([][]byte, len(v.SS))
		for i, b := range v.SS {
			set[i] = []byte(b)
		}
		return &types.AttributeValueMemberBS{Value: set}, nil
	case store.KindL:
		list := make([]types.AttributeValue, len(v.L))
		for i, e := range v.L {
			av, err := toValue(e)
			if err != nil {
				return nil, err
			}
			list[i] = av
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case store.KindM:
		m, err := toItem(v.M)
		return &types.AttributeValueMemberM{Value: m}, err
	}
	return nil, errForm
}

// toSet maps a string set. DynamoDB has no empty sets and takes no element
// twice.
func toSet(ss []string) (types.AttributeValue, error) {
	set := slices.Sorted(slices.Values(ss))
	if len(set) == 0 || len(slices.Compact(set)) != len(ss) || !utf8.ValidString(strings.Join(set, "")) {
		return nil, errForm
	}
	return &types.AttributeValueMemberSS{Value: set}, nil
}

// fromItem maps an item as DynamoDB returned it; nil for none.
func fromItem(m attributes) (store.Item, error) {
	if len(m) == 0 {
		return nil, nil
	}
	out := make(store.Item, len(m))
	for name, av := range m {
		v, err := fromValue(av)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func fromValue(av types.AttributeValue) (store.Value, error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return store.S(av.Value), nil
	case *types.AttributeValueMemberN:
		return store.Value{Kind: store.KindN, S: av.Value}, nil
	case *types.AttributeValueMemberB:
		return store.B(av.Value), nil
	case *types.AttributeValueMemberBOOL:
		return store.Bool(av.Value), nil
	case *types.AttributeValueMemberNULL:
		return store.Value{Kind: store.KindNULL}, nil
	case *types.AttributeValueMemberSS:
		slices.Sort(av.Value) // a set has no order: show it in one
		return store.SS(av.Value...), nil
	case *types.AttributeValueMemberNS:
		slices.Sort(av.Value)
		return store.Value{Kind: store.KindNS, SS: av.Value}, nil
	case *types.AttributeValueMemberBS:
		set := make([]string, len(av.Value))
		for i, b := range av.Value {
			set[i] = string(b)
		}
		slices.Sort(set)
		return store.Value{Kind: store.KindBS, SS: set}, nil
	case *types.AttributeValueMemberL:
		list := make([]store.Value, len(av.Value))
		for i, e := range av.Value {
			v, err := fromValue(e)
			if err != nil {
				return store.Value{}, err
			}
			list[i] = v
		}
		return store.Value{Kind: store.KindL, L: list}, nil
	case *types.AttributeValueMemberM:
		m := make(map[string]store.Value, len(av.Value))
		for k, e := range av.Value {
			v, err := fromValue(e)
			if err != nil {
				return store.Value{}, err
			}
			m[k] = v
		}
		return store.Value{Kind: store.KindM, M: m}, nil
	}
	return store.Value{}, errForm
}
