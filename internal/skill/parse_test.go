package skill

import (
	"strings"
	"testing"
)

func TestFrontMatterThatReadersMightTakeDifferentlyIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "# No front matter", "---\nname: a\n---\n# A", "---\ndescription: A.\nname: a\n---\n# A", "---\nname: A\ndescription: A.\n---\n# A", "---\nname: a--b\ndescription: A.\n---\n# A",
		"---\nname: -a\ndescription: A.\n---\n# A", "---\nname: a\ndescription: One: two.\n---\n# A", "---\nname: a\ndescription: One # two.\n---\n# A", "---\nname: a\ndescription: \"One\"\n---\n# A",
		"---\nname: a\ndescription: A. \n---\n# A", "---\nname: a\ndescription: A:\n---\n# A", "---\nname: a\ndescription: A.\n", "\n---\nname: a\ndescription: A.\n---\n",
		"---\nname: " + strings.Repeat("a", 65) + "\ndescription: A.\n---\n", "---\nname: a\ndescription: " + strings.Repeat("a", 1025) + "\n---\n",
	} {
		if g, err := parse(text); err == nil {
			t.Errorf("%q is taken: %+v", text, g)
		}
	}
	g, err := parse("---\nname: a-b\ndescription: What, and when; it's plain.\n---\n# A\n")
	if err != nil || g.Name != "a-b" || g.Description != "What, and when; it's plain." {
		t.Errorf("%+v, %v", g, err)
	}
}
