package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

const (
	partBytes = 6 << 20
	// inFlight bounds the memory of an upload in parts: so many buffers in all,
	// one being filled while the others are sent.
	inFlight = 4
	// maxBytes is the largest object: what a presigned put can upload too.
	maxBytes = 5 << 30
)

// Put is in the port.
func (b *Bucket) Put(ctx context.Context, in store.PutObject) (store.ObjectMeta, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: "put_object", Key: in.Key, Write: true, ValidatedAt: in.ValidatedAt})
	if err != nil {
		return store.ObjectMeta{}, err
	}
	switch {
	case in.Bytes > maxBytes:
		return store.ObjectMeta{}, call.Refuse(store.TooLarge, "ObjectSize")
	case in.Key == "" || in.Bytes < 0 || in.Body == nil:
		return store.ObjectMeta{}, call.Refuse(store.Invalid, "Form")
	}
	start, err := beginning(in)
	switch {
	case err != nil:
		return store.ObjectMeta{}, call.Refuse(store.Invalid, "BodyLength")
	case in.Bytes > b.partsAbove:
		err = b.putParts(ctx, call, in)
	default:
		err = b.putWhole(ctx, call, in, start)
	}
	return meta(call), err
}

// putWhole creates an object with one request. The body streams; the service
// holds it against its SHA-256, which is also what is signed. Lost: nothing
// there. Landed but the answer was lost: the repeat ends with Exists.
func (b *Bucket) putWhole(ctx context.Context, call *awscall.Call, in store.PutObject, start int64) error {
	body := &sending{ReadSeeker: in.Body, end: start + in.Bytes}
	sse, kmsKey := encryption(in.KMSKey)
	req := &s3.PutObjectInput{
		Bucket: &b.name, Key: &in.Key, IfNoneMatch: aws.String("*"),
		Body: body, ContentLength: &in.Bytes, ContentType: mediaType(in.MediaType),
		ChecksumSHA256:       aws.String(base64.StdEncoding.EncodeToString(in.SHA256[:])),
		ServerSideEncryption: sse, SSEKMSKeyId: kmsKey,
		StorageClass: types.StorageClass(in.StorageClass), Tagging: tagging(in), Metadata: in.Metadata,
	}
	err := repeat(ctx, call, func() error {
		if _, err := body.Seek(start, io.SeekStart); err != nil {
			return err
		}
		_, err := b.client.PutObject(ctx, req, signing(in.SHA256))
		return err
	})
	if err != nil && body.failed && !body.whole {
		// No attempt sent all of it, so none can have landed.
		return &store.Error{Call: call.Name, Key: call.Key, Kind: store.Invalid, Code: "BodyRead"}
	}
	return err
}

// signing makes the digest of a body a part of the signature. It is known
// already, so the SDK need not read the body for it.
func signing(sum [32]byte) func(*s3.Options) {
	m := middleware.InitializeMiddlewareFunc("CairnPayloadHash", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error,
	) {
		return next.HandleInitialize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum[:])), in)
	})
	return s3.WithAPIOptions(func(stack *middleware.Stack) error { return stack.Initialize.Add(m, middleware.Before) })
}

// beginning gives where a body stands, if from there it is as long as
// announced.
func beginning(in store.PutObject) (int64, error) {
	start, err := in.Body.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	end, err := in.Body.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if end-start != in.Bytes {
		return 0, io.ErrUnexpectedEOF
	}
	return in.Body.Seek(start, io.SeekStart)
}

// sending remembers how reading a body went, over all attempts to send it.
type sending struct {
	io.ReadSeeker
	at, end int64
	failed  bool // an attempt could not read on
	whole   bool // an attempt had all of it to send
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.ReadSeeker.Read(p)
	s.at += int64(n)
	s.whole = s.whole || s.at >= s.end
	s.failed = s.failed || err != nil && err != io.EOF
	return n, err
}

func (s *sending) Seek(offset int64, whence int) (at int64, err error) {
	at, err = s.ReadSeeker.Seek(offset, whence)
	s.at = at
	return at, err
}

// repeat makes a put until no other one is at work on the same key, after
// which the condition decides.
func repeat(ctx context.Context, call *awscall.Call, do func() error) error {
	for round := 1; ; round++ {
		err := do()
		if err == nil {
			return nil
		}
		if awscall.Classify(err).Kind != store.Conflict || round == maxRounds || !awscall.Sleep(ctx, awscall.Backoff(round)) {
			return call.Fail(err)
		}
		if late := call.CheckWindow(); late != nil {
			return late
		}
	}
}

// putParts creates an object by a multipart upload. Only its completion makes
// the object, so only that is conditional, pinned to the validation, and can be
// ambiguous. A crash before it leaves an upload that shows nowhere but in
// Uploads; the bucket's lifecycle removes it. The completion landed but its
// answer was lost: the SDK's repeat ends with Exists, or NoSuchUpload, which is
// then an unknown outcome like the lost answer.
func (b *Bucket) putParts(ctx context.Context, call *awscall.Call, in store.PutObject) error {
	up, parts, err := b.sendParts(ctx, call, in)
	if err == nil {
		err = call.CheckWindow()
	}
	if err == nil {
		err = repeat(ctx, call, func() error {
			_, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
				Bucket: &b.name, Key: &in.Key, UploadId: &up, IfNoneMatch: aws.String("*"),
				MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
			})
			return err
		})
	}
	if err != nil && up != "" && !store.Ambiguous(err) {
		b.abandon(ctx, in.Key, up)
	}
	return err
}

// sendParts begins an upload and sends its parts, a few at a time.
func (b *Bucket) sendParts(ctx context.Context, whole *awscall.Call, in store.PutObject) (upload string, done []types.CompletedPart, err error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: whole.Name, Key: whole.Key})
	if err != nil {
		return "", nil, err
	}
	defer func() { whole.Count(call) }()
	sse, kmsKey := encryption(in.KMSKey)
	up, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: &in.Key, ContentType: mediaType(in.MediaType),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256, ChecksumType: types.ChecksumTypeComposite,
		ServerSideEncryption: sse, SSEKMSKeyId: kmsKey,
		StorageClass: types.StorageClass(in.StorageClass), Tagging: tagging(in), Metadata: in.Metadata,
	})
	if err != nil {
		return "", nil, call.Fail(err)
	}
	done = make([]types.CompletedPart, (in.Bytes+partBytes-1)/partBytes)
	calls := make([]*awscall.Call, len(done))
	free := make(chan []byte, inFlight)
	for range inFlight {
		free <- make([]byte, partBytes)
	}
	sum := sha256.New()
	sends, sendCtx := errgroup.WithContext(ctx)
	for i := range done {
		buf := <-free
		part := buf[:min(partBytes, in.Bytes-int64(i)*partBytes)]
		if sendCtx.Err() != nil {
			break // one failed: Wait tells
		}
		if _, err = io.ReadFull(in.Body, part); err != nil {
			break
		}
		sends.Go(func() error {
			defer func() { free <- buf }()
			var err error
			done[i], calls[i], err = b.sendPart(sendCtx, whole, *up.UploadId, int32(i+1), part)
			return err
		})
		sum.Write(part)
	}
	failed := sends.Wait()
	for _, c := range calls {
		if c != nil {
			call.Count(c)
		}
	}
	switch {
	case failed != nil:
		return *up.UploadId, nil, failed
	case err != nil || [32]byte(sum.Sum(nil)) != in.SHA256:
		return *up.UploadId, nil, call.Refuse(store.Invalid, "BodyDigest")
	}
	return *up.UploadId, done, nil
}

// sendPart sends one part with a digest of its own.
func (b *Bucket) sendPart(ctx context.Context, whole *awscall.Call, upload string, number int32, part []byte) (types.CompletedPart, *awscall.Call, error) {
	ctx, call, err := awscall.Begin(ctx, b.clock, awscall.Call{Name: whole.Name, Key: whole.Key})
	if err != nil {
		return types.CompletedPart{}, call, err
	}
	n, sum := int64(len(part)), sha256.Sum256(part)
	out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.name, Key: &whole.Key, UploadId: &upload, PartNumber: &number,
		Body: bytes.NewReader(part), ContentLength: &n,
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	}, signing(sum))
	if err != nil {
		return types.CompletedPart{}, call, call.Fail(err)
	}
	return types.CompletedPart{ETag: out.ETag, PartNumber: &number, ChecksumSHA256: out.ChecksumSHA256}, call, nil
}

// abandon ends a failed upload, also when the caller's context has ended. What
// it cannot end the bucket's lifecycle does.
func (b *Bucket) abandon(ctx context.Context, key, uploadID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = b.Abort(ctx, store.Upload{Key: key, UploadID: uploadID})
}

func tagging(in store.PutObject) *string {
	if !in.ExpiresTag {
		return nil
	}
	return aws.String(ExpiresTagKey + "=" + ExpiresTagValue)
}
