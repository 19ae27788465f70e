// Package search finds things by their text. Features hand it a Doc inside the write that changes the thing; a search reads
// heaps and gives ranked hits. It knows no rights: the caller names the heaps and kinds that may be seen.
//
// An analyzer turns text into tokens, the same for a document and a query. The tokens of each passage of about 1,000
// characters lie in the table search_passage, the same on both databases. An Engine ranks in memory, in an inverted index per
// heap that is brought up to date from the heap's counter (db.Tx.Numbered) before each search: so own writes are seen at
// once, replicas need no messages, and both databases give the same rows in the same order.
//
// # Questions
//
// Ask finds candidates by words (BM25 of the whole and of the best passage; any form of an English word) and by vectors
// (sketches first), then adds up: nearness in meaning, words, names, times, and for the best of them what a second reading
// shows (words beside each other, in one place, in the title) and what they have in common. What stands just before and after
// a thing in its thread helps to find it.
//
// # Gone passages
//
// A removed thing, or the tail of one that got shorter, stays as a row without tokens that is marked gone, since that is how
// another replica learns of it. Nothing purges these rows. A job that does must leave the highest number purged beside the
// heap's counter, and an engine that holds less than that must load the heap anew, or it would keep what is gone.
//
// # Older analyzers
//
// search_passage.analyzer tells which analyzer made a row. Rows of an older one are searched by the tokens they have: the
// text isn't here, so the features must put their things again after analyzerVersion was raised.
package search

// analyzerVersion is written beside each row. Raise it when the tokens of any text change.
const analyzerVersion = 1
