package config

import (
	"strings"
	"time"
)

// A schema says to an editor what may stand as a value: a part of JSON Schema, draft 2020-12. The tables of members
// hold it beside the function that reads the value. It lets all pass that the parser takes, and stops less than the
// parser refuses.
type schema struct {
	Description          string     `json:"description,omitempty"`
	Type                 any        `json:"type,omitempty"` // one name, or a list
	Default              any        `json:"default,omitempty"`
	Enum                 []string   `json:"enum,omitempty"`
	Pattern              string     `json:"pattern,omitempty"`
	Minimum              *int       `json:"minimum,omitempty"`
	Maximum              *int       `json:"maximum,omitempty"`
	Items                *schema    `json:"items,omitempty"`
	MinItems             int        `json:"minItems,omitempty"`
	Properties           properties `json:"properties,omitempty"`
	PropertyNames        *schema    `json:"propertyNames,omitempty"`
	AdditionalProperties any        `json:"additionalProperties,omitempty"` // false, or a *schema
	MinProperties        int        `json:"minProperties,omitempty"`
	Required             []string   `json:"required,omitempty"`
	Not                  *schema    `json:"not,omitempty"`
	If                   *schema    `json:"if,omitempty"`
	Then                 *schema    `json:"then,omitempty"`
	AllOf                []schema   `json:"allOf,omitempty"`
	AnyOf                []schema   `json:"anyOf,omitempty"`
	OneOf                []schema   `json:"oneOf,omitempty"`

	unset string // what counts without the member, where that is no constant
}

// properties are the members of an object, in the order of their table.
type properties []property

type property struct {
	name  string
	value schema
}

// reference is a pattern of every string that has a reference: what it stands for is known at load only.
const reference = `\$\{`

// durationPattern is what time.ParseDuration takes.
const durationPattern = `^[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// scalar is a string. Any single value is one, as it is written.
func scalar(about string) schema {
	return schema{Description: about, Type: []string{"string", "number", "boolean"}}
}

// like wants a text to match pattern, unless it has a reference. A number passes.
func (s schema) like(pattern string) schema { s.Pattern = reference + "|" + pattern; return s }

// form is a string that matches pattern, which no number does, unless it has a reference.
func form(about, pattern string) schema {
	return schema{Description: about, Type: "string"}.like(pattern)
}

// choice is one of list.
func choice(about string, list []string) schema {
	return schema{Description: about, Type: "string", AnyOf: []schema{{Enum: list}, {Pattern: reference}}}
}

func boolean(about string) schema { return schema{Description: about, Type: "boolean", Default: false} }

func period(about string) schema { return form(about, durationPattern) }

// count is a whole number from least to most.
func count(about string, least, most int) schema {
	return schema{
		Description: about, Type: []string{"integer", "string"}, Minimum: &least, Maximum: &most, Pattern: reference + "|^[0-9]+$",
	}
}

func listOf(about string, item schema) schema {
	return schema{Description: about, Type: "array", Items: &item}
}

// mapOf is an object whose members a person names, each as the pattern names wants it.
func mapOf(about, names string, value schema) schema {
	s := schema{Description: about, Type: "object", AdditionalProperties: &value}
	if names != "" {
		s.PropertyNames = &schema{Pattern: names}
	}
	return s
}

// object is an object with the members of table and no others.
func object[T any](about string, table []member[T]) schema {
	s := schema{Description: about, Type: "object", AdditionalProperties: false}
	for _, m := range table {
		s.Properties = append(s.Properties, property{m.name, m.schema})
	}
	return s
}

// byDefault says which value counts without the member.
func (s schema) byDefault(v any) schema {
	if d, is := v.(time.Duration); is {
		v = shortDuration(d)
	}
	s.Default = v
	return s
}

// without says in words what counts without the member.
func (s schema) without(said string) schema { s.unset = said; return s }

// filled wants one item or member at least.
func (s schema) filled() schema {
	if s.Type == "array" {
		s.MinItems = 1
	} else {
		s.MinProperties = 1
	}
	return s
}

// having wants the named members to be there.
func having(names ...string) schema { return schema{Required: names} }

// never stands where a member has no effect.
func never(names ...string) schema {
	s := schema{}
	for _, name := range names {
		s.Properties = append(s.Properties, property{name, schema{Not: &schema{}}})
	}
	return s
}

// shortDuration writes d as a person does: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	if minutes, whole := strings.CutSuffix(d.String(), "m0s"); whole {
		return minutes + "m"
	}
	return d.String()
}
