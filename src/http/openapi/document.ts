import { type Bodies, cutoutBodies, improveBodies, type Schema } from './bodies.ts';
import {
  bodyHeaders,
  components,
  cutoutResponse,
  errorResponse,
  json,
  type ResponseObject,
} from './responses.ts';

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: 'header';
    readonly description: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export type OpenApi = ReturnType<typeof openApiDocument>;

const anyKey = [{ apiKey: [] }, { bearer: [] }];

const responses = (success: ResponseObject, ...errors: readonly number[]) =>
  Object.fromEntries([['200', success], ...errors.map((status) => [String(status), errorResponse(status)])]);

const body = ({ multipart, urlencoded, json: object }: Bodies) => ({
  required: true,
  content: {
    'multipart/form-data': { schema: multipart },
    'application/x-www-form-urlencoded': { schema: urlencoded },
    'application/json': { schema: object },
  },
});

const cutout = (operationId: string, summary: string): Operation => ({
  operationId,
  summary,
  description:
    'Exactly one of image_file, image_file_b64 and image_url, at most one of bg_color, bg_image_url and bg_image_file, at most one of mask_file and mask_file_b64, and neither with subject_points or subject_box. An empty field counts as absent, an unknown one is ignored and named in X-Ignored-Fields. Fields other than files may also be in the query; those of the body count before them. A repeated request (the same Idempotency-Key, or the same image and options) within 10 minutes returns the cached result of the first one and costs nothing.',
  security: anyKey,
  parameters: [
    {
      name: 'Idempotency-Key',
      in: 'header',
      description:
        'Safe-retry key: while its first result is cached, the same key returns that result without a second charge. Afterwards, other content under the key is a new request.',
      schema: { type: 'string' },
    },
  ],
  requestBody: body(cutoutBodies),
  responses: responses(cutoutResponse, 400, 402, 403, 415, 429, 500, 503, 504),
});

const health = (operationId: string, summary: string, ...errors: readonly number[]): Operation => ({
  operationId,
  summary,
  security: [],
  responses: responses(json(summary, 'Health'), ...errors),
});

const paths: Readonly<Record<string, Readonly<Partial<Record<'get' | 'post', Operation>>>>> = {
  '/v1.0/cutout': { post: cutout('cutout', 'Remove the background of an image') },
  '/v1.0/removebg': { post: cutout('removebg', 'Alias of /v1.0/cutout') },
  '/v1.0/account': {
    get: {
      operationId: 'account',
      summary: 'Credits and free previews of the account',
      security: anyKey,
      responses: responses(json('Credits and free previews.', 'Account'), 403, 500),
    },
  },
  '/v1.0/improve': {
    post: {
      operationId: 'improve',
      summary: 'Submit an image that is stored to improve the networks',
      description: 'Exactly one of image_file, image_file_b64 and image_url.',
      security: anyKey,
      requestBody: body(improveBodies),
      responses: responses(
        json('The image is stored.', 'Improve', bodyHeaders),
        400,
        403,
        415,
        429,
        500,
        503,
        504,
      ),
    },
  },
  '/health/live': { get: health('live', 'The process is running') },
  '/health/ready': {
    get: health(
      'ready',
      'The network is loaded, the stores can be reached and new requests are accepted',
      503,
    ),
  },
};

/** The OpenAPI description of the public operations, from the declarations that the service itself uses. */
export const openApiDocument = (version: string) => ({
  openapi: '3.1.0',
  info: {
    title: 'Cutout',
    version,
    description: 'Removes the background of images. Request-compatible with the remove.bg API v1.0.',
  },
  servers: [{ url: '/' }],
  paths,
  components: {
    schemas: components,
    securitySchemes: {
      apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
      bearer: { type: 'http', scheme: 'bearer' },
    },
  },
});
