package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/op"
)

// fileCommand holds the commands that move the bytes of files.
func (r *run) fileCommand() *cobra.Command {
	var heap, name string
	put := &cobra.Command{Use: "put PATH...", Short: "Upload files (- reads one from standard input)",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fault.New(fault.Invalid, "%s takes the paths of files (see `%s --help`)", cmd.CommandPath(), cmd.CommandPath())
			case name != "" && len(args) > 1:
				return fault.New(fault.Invalid, "--name is for one file, and %d are given", len(args))
			case name == "" && args[0] == "-":
				return fault.New(fault.Invalid, "standard input has no name: give --name")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.putFiles(cmd.Context(), args, name, heap) }}
	put.Flags().StringVar(&heap, "heap", "", "heap that they go to, id or name (default your personal one)")
	put.Flags().StringVar(&name, "name", "", "name to store it under (default that of the path)")

	var out, size string
	get := &cobra.Command{Use: "get ID", Short: "Download a file", Args: exactly("the id of a file; `cairn file list` has them", 1),
		Long: "Download a file, to -o or to standard output. A file that is there already is not written over.",
		RunE: func(cmd *cobra.Command, args []string) error { return r.getFile(cmd.Context(), args[0], size, out) }}
	get.Flags().StringVarP(&out, "output", "o", "", "file to write, or a folder to put it into under its own name")
	get.Flags().StringVar(&size, "thumbnail", "", "a small picture of it instead: s, m or l")

	var of, cursor string
	var trashed bool
	list := &cobra.Command{Use: "list", Short: "List files, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := map[string]any{}
			for k, v := range map[string]string{"heap": heap, "block_id": of, "cursor": cursor} {
				if v != "" {
					args[k] = v
				}
			}
			if trashed {
				args["trashed"] = true
			}
			return r.callAndPrint(cmd.Context(), "list_files", args)
		}}
	list.Flags().StringVar(&heap, "heap", "", "only those of this heap, id or name")
	list.Flags().StringVar(&of, "block", "", "those that the document of this block shows")
	list.Flags().StringVar(&cursor, "cursor", "", "go on where an answer ended: its next_cursor")
	list.Flags().BoolVar(&trashed, "trashed", false, "those in the trash")
	return group("file", "Files: upload, download, list", put, get, list)
}

func (r *run) putFiles(ctx context.Context, paths []string, name, heap string) error {
	uploads := []json.RawMessage{}
	for _, path := range paths {
		called := name
		if called == "" {
			called = filepath.Base(path)
		}
		res, err := r.putFile(ctx, path, called, heap)
		if err != nil {
			if len(uploads) > 0 {
				fmt.Fprintf(r.err, "cairn: %d of %d files were stored before this one failed: %s\n", len(uploads), len(paths), printable(path, false))
			}
			return err
		}
		uploads = append(uploads, res.JSON)
		if len(paths) == 1 {
			return r.printAnswer(res)
		}
	}
	b, err := json.Marshal(map[string]any{"count": len(uploads), "uploads": uploads})
	if err != nil {
		return failure{err}
	}
	return r.printAnswer(op.Result{JSON: b})
}

func (r *run) putFile(ctx context.Context, path, name, heap string) (op.Result, error) {
	in, length := r.in, int64(-1)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return op.Result{}, failure{err}
		}
		defer f.Close() //nolint:errcheck // it was read
		info, err := f.Stat()
		if err != nil {
			return op.Result{}, failure{err}
		}
		if info.IsDir() {
			return op.Result{}, fault.New(fault.Invalid, "%s is a folder: give the files in it", path)
		}
		if in = f; info.Mode().IsRegular() {
			length = info.Size()
		}
	}
	remote, err := r.remote()
	if err != nil {
		return op.Result{}, err
	}
	if remote != nil {
		return remote.upload(ctx, in, length, name, heap)
	}
	args := map[string]string{"name": name}
	if heap != "" {
		args["heap"] = heap
	}
	return r.call(op.WithStream(ctx, &op.Stream{In: in}), "upload_file", args)
}

// upload sends a file to the server.
func (s *server) upload(ctx context.Context, in io.Reader, length int64, name, heap string) (op.Result, error) {
	q := url.Values{}
	if heap != "" {
		q.Set("heap", heap)
	}
	if length == 0 {
		in = http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Server+"/api/files?"+q.Encode(), io.NopCloser(in))
	if err != nil {
		return op.Result{}, err
	}
	req.ContentLength = length
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	req.Header.Set("Expect", "100-continue") // a refusal comes before the bytes are sent
	res, err := s.transfer(req)
	if err != nil {
		return op.Result{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return op.Result{}, fault.Wrap(fault.Unavailable, err, "%s broke off its answer: %v", s.Server, err)
	}
	if res.StatusCode != http.StatusOK || !json.Valid(b) {
		return op.Result{}, s.refusal(res.StatusCode, b)
	}
	return op.Result{JSON: b}, nil
}

// transfer does a request that may take as long as its bytes need.
func (s *server) transfer(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("User-Agent", "cairn-cli")
	res, err := (&http.Client{Transport: transport()}).Do(req)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s does not answer: %v", s.Server, err)
	}
	return res, nil
}

// download is a file on its way: its bytes, the name to save it under, and the hash that they must have, "" where none is known.
type download struct {
	io.ReadCloser
	name, sha256 string
}

func (r *run) openFile(ctx context.Context, id, size string) (*download, error) {
	remote, err := r.remote()
	if err != nil {
		return nil, err
	}
	if remote != nil {
		return remote.download(ctx, id, size)
	}
	args := map[string]string{"file_id": id}
	if size != "" {
		args["thumbnail"] = size
	}
	stream := &op.Stream{}
	res, err := r.call(op.WithStream(ctx, stream), "read_file", args)
	if err != nil {
		return nil, err
	}
	var about struct {
		SafeName string `json:"safe_name"`
		ETag     string `json:"etag"`
	}
	if err := json.Unmarshal(res.JSON, &about); err != nil {
		return nil, failure{err}
	}
	return &download{stream.Out, about.SafeName, hashOf(about.ETag)}, nil
}

// hashOf gives the hash that a file's ETag is; a thumbnail's is none.
func hashOf(etag string) string {
	if etag = strings.Trim(etag, `"`); len(etag) == 2*sha256.Size {
		return etag
	}
	return ""
}

func (s *server) download(ctx context.Context, id, size string) (*download, error) {
	address := s.Server + "/files/" + url.PathEscape(id)
	if size != "" {
		address += "/thumbnail/" + url.PathEscape(size)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	res, err := s.transfer(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		return nil, s.refusal(res.StatusCode, b)
	}
	_, params, _ := mime.ParseMediaType(res.Header.Get("Content-Disposition"))
	return &download{res.Body, params["filename"], hashOf(res.Header.Get("ETag"))}, nil
}

func (r *run) getFile(ctx context.Context, id, size, out string) error {
	if out == "" && terminal(r.out) {
		return fault.New(fault.Invalid, "a file doesn't belong on a terminal: give -o FILE, or -o . for its own name")
	}
	d, err := r.openFile(ctx, id, size)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // it was read
	if out == "" {
		return d.copy(r.out)
	}
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		name := filepath.Base(filepath.Clean("/" + d.name)) // whatever a server says, it stays in the folder
		if d.name == "" || strings.ContainsAny(name, `/\`) {
			name = id
		}
		out = filepath.Join(out, name)
	}
	part := filepath.Join(filepath.Dir(out), ".cairn-"+rand.Text()) // what breaks off leaves nothing
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return failure{err}
	}
	defer os.Remove(part) //nolint:errcheck // it has its name by then, or goes
	err = d.copy(f)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = failure{cerr}
	}
	if err == nil {
		if err = os.Link(part, out); errors.Is(err, os.ErrExist) {
			return fault.New(fault.Conflict, "%s is there already: remove it, or give another name with -o", out)
		} else if err != nil { // a file system without links
			err = newFile(part, out)
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(r.err, printable(out, false))
	return nil
}

// newFile renames a file unless the name is taken.
func newFile(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fault.New(fault.Conflict, "%s is there already: remove it, or give another name with -o", to)
	}
	if err := os.Rename(from, to); err != nil {
		return failure{err}
	}
	return nil
}

// copy writes the bytes and checks that they are those that were stored.
func (d *download) copy(w io.Writer) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), d); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the file broke off: %v", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); d.sha256 != "" && got != d.sha256 {
		return fault.New(fault.Unavailable, "what came is not what was stored (SHA-256 %s, it should be %s): try again", got, d.sha256)
	}
	return nil
}
