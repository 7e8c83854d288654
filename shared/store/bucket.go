package store

import (
	"context"
	"io"
	"time"
)

// Bucket keeps immutable objects: versioned, encrypted by the service.
// Implementations are safe for concurrent use and return *Error.
type Bucket interface {
	// Put creates an object (If-None-Match: *, SHA-256 checked by the service);
	// kind Exists when the key is taken: read it and compare.
	Put(ctx context.Context, in PutObject) (ObjectMeta, error)
	// Get reads an object whole, or the range In asks for; kind NotFound. The
	// reader holds the bytes against their digest; Get does not.
	Get(ctx context.Context, in GetObject) (io.ReadCloser, ObjectInfo, ObjectMeta, error)
	// Head describes the newest version of an object; kind NotFound.
	Head(ctx context.Context, key string) (ObjectInfo, ObjectMeta, error)
	// Refresh renews an object's LastModified by copying it onto itself,
	// conditional on its ETag; kind Exists when the ETag is another. metadata
	// replaces the object's, nil keeps it.
	Refresh(ctx context.Context, key, etag string, metadata map[string]string) (ObjectInfo, ObjectMeta, error)
	// List gives one page of the newest versions below a prefix, in key order.
	List(ctx context.Context, in ListObjects) (ObjectPage, ObjectMeta, error)
	// Versions gives one page of all versions and delete markers below a prefix.
	Versions(ctx context.Context, in ListObjects) (ObjectPage, ObjectMeta, error)
	// Delete removes versions for good, at most 1,000 a call; returns those
	// that could not be removed (per-key errors inside a successful answer).
	Delete(ctx context.Context, versions []ObjectVersion) (failed []ObjectVersion, meta ObjectMeta, err error)
	// Uploads lists unfinished multipart uploads below a prefix; Abort ends one.
	Uploads(ctx context.Context, prefix string) ([]Upload, ObjectMeta, error)
	Abort(ctx context.Context, u Upload) (ObjectMeta, error)
	// PresignPut gives a URL that creates exactly this object, and the headers
	// the client must send; PresignGet one that reads it.
	PresignPut(ctx context.Context, in PresignPut) (Presigned, error)
	PresignGet(ctx context.Context, in PresignGet) (Presigned, error)
	// Uploads by URL are single puts: S3 allows 5 GB.
}

// MultipartAbove is the size above which an object is sent in parts. Up to it
// the service knows the digest of the whole, and a put is one request; S3's own
// advice is to use parts from 100 MB on.
const MultipartAbove = 100 << 20

// ObjectMeta comes with every answer.
type ObjectMeta struct {
	Date     time.Time // the store's clock; zero when the answer carried none
	Requests int       // service requests made (multipart makes several)
}

// PutObject is an object to create.
type PutObject struct {
	Key string
	// Body is read from where it stands to its end, once an attempt and in
	// constant memory; Bytes is its exact length from there and SHA256 its digest
	// (both required). Above MultipartAbove it is sent in parts.
	Body   io.ReadSeeker
	Bytes  int64
	SHA256 [32]byte
	// MediaType; "" means application/octet-stream.
	MediaType string
	// StorageClass; "" means standard.
	StorageClass string
	// ExpiresTag marks an object for the lifecycle rule that removes it after a
	// day (views).
	ExpiresTag bool
	// KMSKey encrypts with this key instead of the bucket's; "" the bucket's.
	KMSKey string
	// Metadata stands beside the object in plain text: lower-case names, printable
	// ASCII, 2 KB of names and values together.
	Metadata map[string]string
	// ValidatedAt as in Put.
	ValidatedAt time.Time
}

// GetObject names an object to read. VersionID "" is the newest.
type GetObject struct {
	Key       string
	VersionID string
	// Offset and Length select a range; Length 0 means to the end.
	Offset, Length int64
}

// ObjectInfo describes a stored object.
type ObjectInfo struct {
	Key          string
	VersionID    string
	ETag         string
	Bytes        int64
	SHA256       []byte // of Head; nil when the service does not know it (multipart)
	LastModified time.Time
	MediaType    string
	StorageClass string
	Encryption   string // aws:kms and so on
	DeleteMarker bool
	Metadata     map[string]string // as put; nil in listings
}

// ObjectVersion names one version of an object for removal.
type ObjectVersion struct{ Key, VersionID string }

// ListObjects asks for a page. Limit 0 is 1,000; Cursor "" the beginning.
type ListObjects struct {
	Prefix string
	Cursor string
	Limit  int
}

// ObjectPage is a page of a listing; Cursor "" when nothing is left.
type ObjectPage struct {
	Objects []ObjectInfo
	Cursor  string
}

// Upload is an unfinished multipart upload.
type Upload struct {
	Key, UploadID string
	Started       time.Time
}

// PresignPut asks for a create-only upload URL.
type PresignPut struct {
	Key       string
	Bytes     int64
	SHA256    [32]byte
	MediaType string
	KMSKey    string
	Metadata  map[string]string // as in PutObject; the client sends it as headers
	Expires   time.Duration
}

// PresignGet asks for a read URL. The response headers make a browser save the
// file rather than run it.
type PresignGet struct {
	Key, VersionID string
	MediaType      string // response-content-type; "" octet-stream
	Disposition    string // response-content-disposition; "" attachment
	Expires        time.Duration
}

// Presigned is a URL with the headers that belong to it.
type Presigned struct {
	URL     string
	Headers map[string]string
	Expires time.Time
}
