package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
)

// addressTemplates is a group's machine section, ready for use.
type addressTemplates struct {
	template *template.Template
	system   *template.Template
	allowed  []hostRule
}

// nodeFields are what templates see: the fields of NodeView.
var nodeFields = []string{"Name", "Labels", "Annotations", "ProviderID", "SystemUUID"}

// templateFunctions are what templates may call, beside the logic of text/template
// that isAllowed lists. There is no loop, no printf and no nesting: the result
// is no longer than its parts, and a template ends.
var templateFunctions = template.FuncMap{
	// The built-in index gives an empty string for a missing key; a machine at a
	// half-empty address must not be asked.
	"index": func(m map[string]string, key string) (string, error) {
		v, ok := m[key]
		if !ok {
			return "", fmt.Errorf("the Node has no %q there", key)
		}
		return v, nil
	},
	"lower":      strings.ToLower,
	"replace":    func(from, to, s string) string { return strings.ReplaceAll(s, from, to) },
	"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
	"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
}

var templateLogic = []string{"and", "or", "not", "eq", "ne"}

// parseTemplate reads a template and tries it on a sample Node. The second
// result tells whether it uses the Node at all.
func parseTemplate(text string) (*template.Template, bool, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(templateFunctions).Parse(text)
	if err != nil {
		return nil, false, templateError(err)
	}
	uses := false
	if t.Tree == nil {
		return nil, false, errors.New("the template is empty")
	}
	if len(t.Templates()) > 1 {
		return nil, false, errors.New("a template may not define others")
	}
	if err := allowNode(t.Root, &uses); err != nil {
		return nil, false, err
	}
	sample, err := t.Clone()
	if err != nil {
		return nil, false, err
	}
	// The sample has no labels of its own: here a missing key is no error.
	sample.Option("missingkey=zero").Funcs(template.FuncMap{"index": func(m map[string]string, key string) string { return m[key] }})
	node := NodeView{Name: "sample", Labels: map[string]string{}, Annotations: map[string]string{}, ProviderID: "sample://sample", SystemUUID: "sample"}
	if _, err := execute(sample, node); err != nil {
		return nil, false, err
	}
	return t, uses, nil
}

// allowNode looks at every part of a template, also at those that the sample
// does not reach.
func allowNode(n parse.Node, uses *bool) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := allowNode(child, uses); err != nil {
				return err
			}
		}
		return nil
	case *parse.ActionNode:
		return allowNode(n.Pipe, uses)
	case *parse.IfNode:
		return errors.Join(allowNode(n.Pipe, uses), allowNode(n.List, uses), allowNode(n.ElseList, uses))
	case *parse.PipeNode:
		if len(n.Decl) > 0 {
			return errors.New("variables are not supported")
		}
		for _, command := range n.Cmds {
			for _, arg := range command.Args {
				if err := allowNode(arg, uses); err != nil {
					return err
				}
			}
		}
		return nil
	case *parse.FieldNode:
		*uses = true
		return allowField(n)
	case *parse.IdentifierNode:
		return allowFunction(n.Ident)
	case *parse.TextNode, *parse.StringNode, *parse.BoolNode, *parse.CommentNode:
		return nil
	}
	return fmt.Errorf("%s is not supported: a template has text, fields, functions and if", clip(n.String()))
}

func allowField(n *parse.FieldNode) error {
	for _, f := range nodeFields {
		if n.Ident[0] == f {
			return nil
		}
	}
	return fmt.Errorf("there is no field .%s%s; the known ones are %s", clip(n.Ident[0]), suggest(n.Ident[0], nodeFields), quoteAll(nodeFields))
}

func allowFunction(name string) error {
	if _, ok := templateFunctions[name]; ok {
		return nil
	}
	for _, f := range templateLogic {
		if name == f {
			return nil
		}
	}
	return fmt.Errorf("the function %s is not supported", clip(name))
}

// execute fills in a template; anything that the Node lacks is an error.
func execute(t *template.Template, node NodeView) (string, error) {
	var out bytes.Buffer
	if err := t.Execute(&out, node); err != nil {
		return "", templateError(err)
	}
	if out.Len() > maxAddress {
		return "", fmt.Errorf("the result has more than %d bytes", maxAddress)
	}
	return out.String(), nil
}

var templatePosition = regexp.MustCompile(`^[0-9:]+: (executing "" at )?`)

// templateError takes the library's prefixes off a message.
func templateError(err error) error {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	text = strings.TrimPrefix(text, "template: ")
	text = strings.TrimPrefix(text, ":")
	text = templatePosition.ReplaceAllString(text, "")
	return errors.New("the template fails: " + clip(text))
}
