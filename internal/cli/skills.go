package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"cairn/internal/op"
	"cairn/internal/who"
)

// skillsCommand holds the commands about guides. They are part of the program, so neither data nor a server is asked.
func (r *run) skillsCommand() *cobra.Command {
	show := &cobra.Command{Use: "show NAME", Short: "Print one guide", Args: exactly("the name of a guide; `cairn skills list` has them", 1), ValidArgsFunction: r.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, text, err := r.skill(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if r.json {
				text = string(b) + "\n"
			}
			_, err = fmt.Fprint(r.out, text)
			return err
		}}
	list := &cobra.Command{Use: "list", Short: "List the guides", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := r.offline(cmd.Context(), "list_skills", struct{}{})
			if err != nil {
				return err
			}
			return r.printAnswer(res)
		}}
	export := &cobra.Command{Use: "export DIR", Short: "Write the guides as folders of skills, each with its SKILL.md, for a client that reads them from there",
		Args: exactly("the folder to write to, such as .claude/skills", 1),
		Long: "Write the guides as folders of skills, each with its SKILL.md, for a client that reads them from there. What an earlier export left is written anew; all else in the folder stays.",
		RunE: func(cmd *cobra.Command, args []string) error { return r.exportSkills(cmd.Context(), args[0]) }}
	return group("skills", "Guides for agents: how to use the tools", list, show, export)
}

// offline runs an operation that needs no data.
func (r *run) offline(ctx context.Context, name string, args any) (op.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return op.Result{}, err
	}
	runner := op.NewRunner(r.logger(slog.LevelWarn), r.p.Operations()...)
	return runner.Run(who.With(ctx, &who.Caller{Person: true, Via: who.ViaCLI}), name, raw)
}

// skill gives a guide as the answer and as its text.
func (r *run) skill(ctx context.Context, name string) (answer json.RawMessage, text string, err error) {
	res, err := r.offline(ctx, "get_skill", map[string]string{"name": name})
	if err != nil {
		return nil, "", err
	}
	var g struct{ Text string }
	err = json.Unmarshal(res.JSON, &g)
	return res.JSON, g.Text, err
}

// skillNames lists the guides' names.
func (r *run) skillNames(ctx context.Context) (names []string, err error) {
	res, err := r.offline(ctx, "list_skills", struct{}{})
	if err != nil {
		return nil, err
	}
	var list struct{ Skills []struct{ Name string } }
	err = json.Unmarshal(res.JSON, &list)
	for _, s := range list.Skills {
		names = append(names, s.Name)
	}
	return names, err
}

func (r *run) completeSkill(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := r.skillNames(cmd.Context())
	return names, cobra.ShellCompDirectiveNoFileComp
}

// exportSkills writes the guides into dir. A guide that an earlier export left there is written anew; all else stays.
func (r *run) exportSkills(ctx context.Context, dir string) error {
	names, err := r.skillNames(ctx)
	if err != nil {
		return err
	}
	files := []string{}
	for _, name := range names {
		_, text, err := r.skill(ctx, name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name, "SKILL.md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return notWritten(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // for whoever may read the folder
			return notWritten(err)
		}
		files = append(files, file)
	}
	if !r.human() {
		return r.print(map[string]any{"count": len(files), "files": files})
	}
	for _, f := range files {
		fmt.Fprintln(r.out, printable(f, false))
	}
	return nil
}

func notWritten(err error) error {
	return failure{fmt.Errorf("the guides can't be written: %w", err)}
}
