package block

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/doc"
	"cairn/internal/op"
)

// none is an id that no block has, for examples.
const none = `"block_id":"01890a5d-ac96-774b-bcce-b302099a8057"`

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	patch := op.Define(op.Op{Name: "patch_document", Title: "Patch document", Area: area, Effect: op.Write, Big: true,
		Example: `{` + none + `,"base_hash":"0","operations":[{"op":"delete","node_id":"@1"}]}`,
		Doc:     "Change parts of a document, all operations or none. Take node ids and base_hash from get_document (view edit); get_document_formatting describes the operations. Where others wrote since, nothing is written and changed_since says what: read again, or send rebase: true if your nodes are others than theirs."}, s.patch)
	patch.In.Properties["operations"] = operations()
	return []*op.Op{
		op.Define(op.Op{Name: "list_blocks", Title: "List blocks", Area: area, Effect: op.Read,
			Doc: "Blocks (notes, tags, collections), newest-updated first, without their documents. Go on with next_cursor."}, s.list),
		op.Define(op.Op{Name: "search_blocks", Title: "Search blocks", Area: area, Effect: op.Read, Example: `{"query":"garden"}`,
			Doc: "Find blocks by words of their titles and documents, best match first. get_document reads what was found."}, s.search),
		op.Define(op.Op{Name: "list_tags", Title: "List tags", Area: area, Effect: op.Read,
			Doc: "Tags with their parents and how many blocks are right below each."}, s.listTags),
		op.Define(op.Op{Name: "get_block", Title: "Get block", Area: area, Effect: op.Read, Example: `{` + none + `}`,
			Doc: "One block with its tags, properties, relations and backlinks, also from the trash; the document itself by get_document."}, s.get),
		op.Define(op.Op{Name: "get_document", Title: "Get document", Area: area, Effect: op.Read, Example: `{` + none + `}`,
			Doc: "A block's document, page by page: view read (flat nodes) or markdown to read, edit before patch_document. Where truncation or page.has_more is there, ask for the continuation or next_offset. hash is the base_hash for writes."}, s.getDocument),
		op.Define(op.Op{Name: "get_document_formatting", Title: "Get document formatting", Area: area, Effect: op.Read,
			Doc: "The node types, marks and patch operations of documents, their limits, and what Markdown can't say. Call it once before writing nodes or patches."}, s.formatting),
		patch,
		op.Define(op.Op{Name: "replace_document", Title: "Replace document", Area: area, Effect: op.Destroy, Big: true, Confirm: true,
			Example: `{` + none + `,"base_hash":"0","content":"New","confirm_rebuild":true}`,
			Doc:     "Build a document anew from content: all nodes that aren't in it go. Only where patch_document won't do. Refused where blocks shown in place would be dropped, unless allow_dropped_children."}, s.replace),
		op.Define(op.Op{Name: "create_block", Title: "Create block", Area: area, Effect: op.Write, Big: true, Example: `{"title":"Garden plan","content":"# Spring\n\n- [ ] prune"}`,
			Doc: "Add a note, tag or collection. Equal titles are two blocks; give external_ref where it stands for something elsewhere: the same ref gives the existing block and leaves it as it is."}, s.create),
		op.Define(op.Op{Name: "update_block_title", Title: "Rename block", Area: area, Effect: op.Write, Example: `{` + none + `,"title":"x","base_hash":"0"}`,
			Doc: "Give a block another title. base_hash is the hash of get_block or get_document."}, s.updateTitle),
		op.Define(op.Op{Name: "delete_block", Title: "Delete block", Area: area, Effect: op.Destroy, Idempotent: true, Example: `{` + none + `}`,
			Doc: "Put a block into the trash, with its document and relations."}, s.trash),
		op.Define(op.Op{Name: "restore_block", Title: "Restore block", Area: area, Effect: op.Write, Idempotent: true, Example: `{` + none + `}`,
			Doc: "Take a block back out of the trash."}, s.restore),
		op.Define(op.Op{Name: "purge_block", Title: "Purge block", Area: area, Set: set, Effect: op.Destroy, PersonOnly: true, Confirm: true, Example: `{` + none + `}`,
			Doc: "Delete a block in the trash for good: its document, versions, properties, relations and file, and its texts in the record of changes. It can't be undone."}, s.purge),
		op.Define(op.Op{Name: "list_relations", Title: "List relations", Area: area, Effect: op.Read, Example: `{` + none + `}`,
			Doc: "A block's tags and mentions (out), and its children and backlinks (in)."}, s.listRelations),
		op.Define(op.Op{Name: "add_relation", Title: "Add relation", Area: area, Effect: op.Write, Idempotent: true,
			Example: `{"from":"01890a5d-ac96-774b-bcce-b302099a8057","to":"01890a5d-ac96-774b-bcce-b302099a8058","kind":"tag"}`,
			Doc:     "Relate two blocks of a heap. kind tag: from becomes a child of to, a tag or collection. kind mention: a link; those in documents are found by themselves."}, s.addRelation),
		op.Define(op.Op{Name: "remove_relation", Title: "Remove relation", Area: area, Effect: op.Destroy, Idempotent: true,
			Example: `{"from":"01890a5d-ac96-774b-bcce-b302099a8057","to":"01890a5d-ac96-774b-bcce-b302099a8058","kind":"tag"}`,
			Doc:     "Take a tag or a link off a block. What a document mentions goes by patch_document."}, s.removeRelation),
		op.Define(op.Op{Name: "set_property", Title: "Set property", Area: area, Effect: op.Write, Idempotent: true, Example: `{` + none + `,"key":"status","value":"open"}`,
			Doc: "Set a typed property of a block. reference takes the id of a block in the same heap, date YYYY-MM-DD."}, s.setProperty),
		op.Define(op.Op{Name: "remove_property", Title: "Remove property", Area: area, Effect: op.Destroy, Idempotent: true, Example: `{` + none + `,"key":"status"}`,
			Doc: "Take a property off a block."}, s.removeProperty),
		op.Define(op.Op{Name: "get_provenance", Title: "Get provenance", Area: area, Effect: op.Read, Example: `{` + none + `}`,
			Doc: "Who changed a block, which agent for whom, by which tool, what and when, newest first, with the version and hashes of each change of the document."}, s.provenance),
		op.Define(op.Op{Name: "pin_block", Title: "Pin block", Area: area, Set: set, Effect: op.Write, Idempotent: true, Example: `{` + none + `}`,
			Doc: "Pin a block, or unpin it."}, s.pin),
		op.Define(op.Op{Name: "read_version", Title: "Read version", Area: area, Set: set, Effect: op.Read, Example: `{` + none + `,"version":1}`,
			Doc: "A document as it was in an earlier version, page by page, or as Markdown."}, s.readVersion),
		op.Define(op.Op{Name: "compare_versions", Title: "Compare versions", Area: area, Set: set, Effect: op.Read, Example: `{` + none + `,"from_version":1}`,
			Doc: "What differs between two versions of a document, for reading."}, s.compare),
		op.Define(op.Op{Name: "restore_version", Title: "Restore version", Area: area, Set: set, Effect: op.Write, Example: `{` + none + `,"version":1,"base_hash":"0"}`,
			Doc: "Make an earlier version of a document the newest; the versions between stay."}, s.restoreVersion),
	}
}

// operations is the schema of a patch: what stands in each operation is held to doc.Ops.
func operations() *jsonschema.Schema {
	most := doc.MaxOps
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "object"}, MaxItems: &most, Description: "objects with op, node_id, ... (get_document_formatting)"}
}
