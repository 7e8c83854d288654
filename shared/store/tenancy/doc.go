// Package tenancy keeps storage calls within a tenant.
//
// A request's context carries its tenant (With). Stores that are wrapped here
// refuse a key of another tenant before anything is sent, and say to what is
// below them, through the same context (Of), whose data a call is about: package
// config picks the credentials of a session by that, which can reach no other
// tenant's data. So the wall holds twice: once by this code and once by IAM.
//
// Work that belongs to no request (stream records, sweeps of all tenants) has no
// tenant in its context; each of its calls is then made for the tenant of its
// key. Keys that begin with "~" (the indexes of what is due, the receipts of
// purged tenants) belong to no tenant: nobody's session reads them.
package tenancy
