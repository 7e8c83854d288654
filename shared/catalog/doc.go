// Package catalog keeps what a tenant declares beside its executions:
// workflows, retention policies and settings, one small item each in the
// tenant's partition of the main table.
//
// A record is stored as the JSON of its api type, last write wins. Reads are
// consistent. Records hold configuration, never agent data.
package catalog
