-- +goose Up

-- SQLite has one server per folder: its rate windows live in memory.
SELECT 1;
