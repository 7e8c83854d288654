package s3

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// maxExpires is how long a presigned URL may live (SigV4); a URL made with
// temporary credentials ends with them.
const maxExpires = 7 * 24 * time.Hour

// PresignPut is in the port. Everything that makes the object is a signed
// header, none a query parameter, so an upload of another size, digest or
// type, or under another key, does not carry the signature; and it creates
// only.
func (b *Bucket) PresignPut(ctx context.Context, in store.PresignPut) (store.Presigned, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "presign", Key: in.Key})
	if err != nil {
		return store.Presigned{}, err
	}
	if in.Key == "" || in.Bytes < 0 || in.Expires < time.Second || in.Expires > maxExpires {
		return store.Presigned{}, call.Refuse(store.Invalid, "Form")
	}
	if in.Bytes > maxBytes {
		return store.Presigned{}, call.Refuse(store.TooLarge, "ObjectSize")
	}
	sse, kmsKey := encryption(in.KMSKey)
	req, err := b.presigner(in.Expires).PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: &in.Key, IfNoneMatch: aws.String("*"),
		ContentLength: &in.Bytes, ContentType: mediaType(in.MediaType),
		ChecksumSHA256:       aws.String(base64.StdEncoding.EncodeToString(in.SHA256[:])),
		ServerSideEncryption: sse, SSEKMSKeyId: kmsKey, Metadata: in.Metadata,
	})
	if err != nil {
		return store.Presigned{}, call.Fail(err)
	}
	return b.presigned(req, in.Expires), nil
}

// PresignGet is in the port.
func (b *Bucket) PresignGet(ctx context.Context, in store.PresignGet) (store.Presigned, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "presign", Key: in.Key})
	if err != nil {
		return store.Presigned{}, err
	}
	if in.Key == "" || in.Expires < time.Second || in.Expires > maxExpires {
		return store.Presigned{}, call.Refuse(store.Invalid, "Form")
	}
	get := &s3.GetObjectInput{
		Bucket: &b.name, Key: &in.Key,
		ResponseContentType: mediaType(in.MediaType), ResponseContentDisposition: aws.String("attachment"),
	}
	if in.Disposition != "" {
		get.ResponseContentDisposition = &in.Disposition
	}
	if in.VersionID != "" {
		get.VersionId = &in.VersionID
	}
	req, err := b.presigner(in.Expires).PresignGetObject(ctx, get)
	if err != nil {
		return store.Presigned{}, call.Fail(err)
	}
	return b.presigned(req, in.Expires), nil
}

func (b *Bucket) presigner(expires time.Duration) *s3.PresignClient {
	return s3.NewPresignClient(b.client, s3.WithPresignExpires(expires), func(o *s3.PresignOptions) {
		o.Presigner = v4.NewSigner(signS3, func(o *v4.SignerOptions) { o.DisableHeaderHoisting = true })
	})
}

func (b *Bucket) presigned(req *v4.PresignedHTTPRequest, expires time.Duration) store.Presigned {
	headers := map[string]string{}
	for name, values := range req.SignedHeader {
		if http.CanonicalHeaderKey(name) != "Host" { // every client sends that by itself
			headers[http.CanonicalHeaderKey(name)] = values[0]
		}
	}
	return store.Presigned{URL: req.URL, Headers: headers, Expires: b.now().Add(expires).UTC()}
}
