import { typeLabel } from '../../cutout/plan.ts';
import { allSubjectTypes } from '../../engine/types.ts';
import { apiErrors } from '../../errors.ts';
import { subjectAliases } from '../../geometry/shadow.ts';
import type { Properties, Schema } from './bodies.ts';

export interface Header {
  readonly description: string;
  readonly schema: Schema;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

const header = (description: string, schema: Schema): Header => ({ description, schema });
const count = (description: string) => header(description, { type: 'integer', minimum: 0 });
const pixels = (description: string) => header(description, { type: 'integer', minimum: 1 });

const everyResponse = {
  'X-Request-Id': header('Id of the request, also in the log of the service.', { type: 'string' }),
};

/** Headers of the operations with a body, on success and on 400. */
export const bodyHeaders = {
  ...everyResponse,
  'X-Ignored-Fields': header(
    'Names of the fields that this operation does not have: percent-encoded, at most 64 characters each, separated by commas.',
    { type: 'string' },
  ),
};

const rate = {
  'X-RateLimit-Limit': count('Megapixels that the account may send in a minute.'),
  'X-RateLimit-Remaining': count('Megapixels left in this minute.'),
  'X-RateLimit-Reset': count('Unix time in seconds at which the next minute begins.'),
};

const retry = {
  'Retry-After': header('Seconds to wait before the request is sent again.', { type: 'integer', minimum: 1 }),
};

const object = (properties: Properties): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

export const components: Readonly<Record<string, Schema>> = {
  Error: object({
    errors: {
      type: 'array',
      minItems: 1,
      maxItems: 1,
      items: object({
        title: { type: 'string' },
        code: { type: 'string', enum: [...new Set(apiErrors.map(({ code }) => code))] },
        detail: { type: 'string' },
      }),
    },
  }),
  Result: object({
    data: object({
      result_b64: { type: 'string', contentEncoding: 'base64' },
      foreground_top: { type: 'integer', minimum: 0 },
      foreground_left: { type: 'integer', minimum: 0 },
      foreground_width: { type: 'integer', minimum: 1 },
      foreground_height: { type: 'integer', minimum: 1 },
      uncertainty: { type: 'number', minimum: -1, maximum: 1 },
    }),
  }),
  Account: object({
    data: object({
      attributes: object({
        credits: object({
          subscription: { type: 'number', const: 0 },
          payg: { type: 'number', minimum: 0 },
          enterprise: { type: 'number', const: 0 },
          total: { type: 'number', minimum: 0 },
        }),
        api: object({
          free_calls: { type: 'integer', minimum: 0 },
          sizes: { type: 'string', const: 'all' },
        }),
      }),
    }),
  }),
  Improve: object({ id: { type: 'string', format: 'uuid' } }),
  Health: {
    ...object({ status: { type: 'string', enum: ['live', 'ready'] } }),
    properties: {
      status: { type: 'string', enum: ['live', 'ready'] },
      devices: {
        ...object({ ready: { type: 'integer' }, lost: { type: 'integer' } }),
        description: 'GPUs that work and GPUs that stopped working; only of a service that runs on GPUs.',
      },
    },
  },
};

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

export const json = (description: string, name: string, headers = everyResponse): ResponseObject => ({
  description,
  headers,
  content: { 'application/json': { schema: ref(name) } },
});

const bytes = (type: string): { readonly schema: Schema } => ({
  schema: { type: 'string', contentMediaType: type },
});

export const cutoutResponse: ResponseObject = {
  description:
    'The result: an image, or JSON that contains it if Accept names application/json and admits no image (axios, which also accepts `*/*`, gets the image).',
  headers: {
    ...bodyHeaders,
    'X-Type': header('Kind of the subject; absent with type_level=none.', {
      type: 'string',
      enum: [
        ...new Set([
          ...allSubjectTypes.map((type) => typeLabel(type, '2') ?? type),
          ...Object.keys(subjectAliases),
        ]),
      ],
    }),
    'X-Width': pixels('Width of the result.'),
    'X-Height': pixels('Height of the result.'),
    'X-Max-Width': pixels('Width that size=full would give, before a crop.'),
    'X-Max-Height': pixels('Height that size=full would give, before a crop.'),
    'X-Credits-Charged': header('Credits charged for this request.', { type: 'number', minimum: 0 }),
    'X-Foreground-Top': count('Upper edge of the subject in the result.'),
    'X-Foreground-Left': count('Left edge of the subject in the result.'),
    'X-Foreground-Width': pixels('Width of the subject in the result.'),
    'X-Foreground-Height': pixels('Height of the subject in the result.'),
    'X-Uncertainty-Score': header(
      'Chance that a person has to look at the result, 0 (sure) to 1; -1 where it is not known.',
      { type: 'number', minimum: -1, maximum: 1 },
    ),
    'Idempotent-Replayed': header('true if this is the cached result of an earlier request.', {
      type: 'string',
      const: 'true',
    }),
    ...rate,
  },
  content: {
    'image/png': bytes('image/png'),
    'image/jpeg': bytes('image/jpeg'),
    'image/webp': bytes('image/webp'),
    'image/avif': bytes('image/avif'),
    'application/zip': bytes('application/zip'),
    'application/json': { schema: ref('Result') },
  },
};

/** Reason phrase of a status, and all error codes that come with it. */
export function errorResponse(status: number): ResponseObject {
  const rows = apiErrors.filter((row) => row.status === status);
  const lines = rows.map(({ code, title }) => `\`${code}\`: ${title}`);
  const headers = {
    ...(status === 400 ? bodyHeaders : everyResponse),
    ...(status === 429 && rate),
    ...((status === 429 || status === 503) && retry),
  };
  return { ...json(lines.join('\n\n'), 'Error'), headers };
}
