import { maxFileMebibytes, maxImageSide, maxMegapixels } from './inputLimits.ts';

/**
 * All errors the service can answer with: one table (docs/contract.md section 10), one class, one way to
 * create them. `title` and `detail` are public; `cause` is for the log and never sent.
 */
interface Row {
  /** Stable code of the envelope. */
  readonly code: string;
  readonly status: number;
  /** `{name}` is replaced when the error is created. */
  readonly title: string;
  /** Default of an error without a detail of its own. */
  readonly detail: string;
  /** Internal errors: logged with cause and stack. All others are one word in the request's log line. */
  readonly reported: boolean;
  /** Used by the console only, never by the API. */
  readonly console?: true;
}

type Entry = readonly [status: number, title: string, detail: string, more?: Partial<Row>];

const bad = (title: string, detail: string): Entry => [400, title, detail];
const invalid = (field: string, title = `Invalid ${field} parameter given`): Entry =>
  bad(title, `The value of ${field} is not valid.`);

const urlDetail = 'Only absolute http and https URLs of public hosts are accepted.';

const entries = {
  missing_source: bad(
    'No image given',
    'Please provide the source image in the image_url, image_file or image_file_b64 parameter.',
  ),
  multiple_sources: bad(
    'Multiple image sources given: Please provide either the image_url, image_file or image_file_b64 parameter.',
    'More than one of image_url, image_file and image_file_b64 was received.',
  ),
  multiple_bg_sources: bad(
    'Multiple background sources given: Please provide either the bg_color, the bg_image_url or the bg_image_file parameter.',
    'More than one of bg_color, bg_image_url and bg_image_file was received.',
  ),
  multiple_masks: bad(
    'Multiple masks given: Please provide either the mask_file or the mask_file_b64 parameter.',
    'Both mask_file and mask_file_b64 were received.',
  ),
  multiple_subject_sources: bad(
    'Multiple ways to choose the subject given: Please provide either a mask or subject_points and subject_box.',
    'A mask was received together with subject_points or subject_box.',
  ),
  invalid_image_url: bad('Invalid image_url: Please provide a valid URL.', urlDetail),
  invalid_bg_image_url: bad('Invalid bg_image_url: Please provide a valid URL.', urlDetail),
  failed_image_download: bad(
    'Failed to download image from given image_url: {url}',
    'The URL could not be downloaded.',
  ),
  // This title names the parameter as the published API does.
  failed_bg_download: bad(
    'Failed to download background image from given image_url: {url}',
    'The URL could not be downloaded.',
  ),
  failed_to_read_image: bad('There was an error reading the image.', 'The image is damaged or incomplete.'),
  invalid_dimensions: bad(
    'Failed to read image dimensions',
    'The dimensions of the given image could not be read.',
  ),
  invalid_file_type: bad('Invalid file type', 'Expected jpg/png/webp, received an unknown type'),
  file_too_large: bad('File too large', `File exceeds limit of ${maxFileMebibytes}MB`),
  resolution_too_high: bad(
    'Image resolution too high',
    `Maximum supported input resolution is ${maxMegapixels} megapixels, a side may have at most ${maxImageSide} pixels`,
  ),
  unknown_foreground: bad('Could not identify foreground in image.', 'No subject was found.'),
  invalid_size: invalid('size', "Invalid value for parameter 'size'"),
  invalid_type: invalid('type'),
  invalid_type_level: invalid('type_level'),
  invalid_format: invalid('format'),
  invalid_channels: invalid('channels', "Invalid value for parameter 'channels'"),
  invalid_roi: invalid('roi'),
  roi_exceeds_bounds: bad(
    'ROI exceeds image bounds',
    'The given roi parameter defines a region that exceeds the image bounds',
  ),
  roi_region_empty: bad('ROI region is empty', 'The given roi parameter defines an empty region'),
  invalid_crop: invalid('crop'),
  invalid_crop_margin: invalid('crop_margin'),
  invalid_scale: invalid('scale'),
  invalid_position: invalid('position'),
  invalid_lossless: invalid('lossless'),
  invalid_add_shadow: invalid('add_shadow'),
  invalid_shadow_type: invalid('shadow_type'),
  invalid_shadow_opacity: invalid('shadow_opacity'),
  invalid_semitransparency: invalid('semitransparency'),
  invalid_bg_color: invalid('bg_color'),
  invalid_mask_file: invalid('mask_file'),
  mask_shape_mismatch: bad(
    'Mask does not have the shape of the image',
    'The mask has to have the proportions of the upright image.',
  ),
  invalid_subject_points: invalid('subject_points'),
  invalid_subject_box: invalid('subject_box'),
  subject_selection_unavailable: bad(
    'Points and boxes are not available',
    'This installation does not choose the subject by subject_points and subject_box. Use mask_file instead.',
  ),
  malformed_request: bad('Malformed request', 'The body of the request could not be read.'),
  insufficient_credits: [
    402,
    'Insufficient credits',
    'The balance of the account is too low for this request.',
  ],
  auth_missing: [403, 'Missing API Key', 'Send your key in the X-Api-Key header.', { code: 'auth_failed' }],
  auth_invalid: [
    403,
    'API Key invalid',
    'The given API key does not exist or was revoked.',
    { code: 'auth_failed' },
  ],
  not_signed_in: [401, 'Not signed in', 'Sign in at /console first.', { console: true }],
  operators_only: [403, 'For operators only', 'This account is not an operator.', { console: true }],
  forged_request: [
    403,
    'Request from elsewhere',
    'The request did not come from the console of this service. Reload the page and try again.',
    { console: true },
  ],
  not_found: [404, 'Not found', 'No such path.'],
  method_not_allowed: [405, 'Method not allowed', 'This path does not support this method.'],
  unsupported_content_type: [
    415,
    'Unsupported content type',
    'Expected multipart/form-data, application/x-www-form-urlencoded or application/json.',
  ],
  rate_limit_exceeded: [
    429,
    'Rate limit exceeded',
    'Too many requests. Wait for the time given in Retry-After.',
  ],
  /** The client disconnected: only the log sees it. */
  client_closed: [499, 'Client closed request', 'The client closed the connection.'],
  internal_error: [500, 'Internal server error', 'The request could not be completed.', { reported: true }],
  service_unavailable: [
    503,
    'Service unavailable',
    'The service is busy. Try again after the time given in Retry-After.',
  ],
  timeout: [
    504,
    'Request timed out',
    'The request took longer than this service allows. Ask for a smaller size, for PNG or JPG, or try again.',
  ],
} satisfies Record<string, Entry>;

export type ErrorId = keyof typeof entries;

/** Every error by its id, which is its code unless the table says another. */
export const catalogue = Object.fromEntries(
  Object.entries<Entry>(entries).map(([code, [status, title, detail, more]]): [string, Row] => [
    code,
    { code, status, title, detail, reported: false, ...more },
  ]),
) as Readonly<Record<ErrorId, Row>>;

/** Errors of the API, without those of the console. */
export const apiErrors: readonly Row[] = Object.values<Row>(catalogue).filter((each) => !each.console);

/** Options with an error of their own for an invalid value. */
export type InvalidOption = Extract<ErrorId, `invalid_${string}`>;

/** Why work was refused that could have succeeded at another time. A label of metrics: few and fixed. */
export type Reason =
  | 'credits'
  | 'rate'
  | 'concurrency'
  | 'attempts'
  /** The queue is too long. */
  | 'queue'
  /** The deadline could not be met. */
  | 'deadline'
  | 'memory'
  /** Too many downloads are in progress, or too many of the account failed. */
  | 'downloads'
  /** Database or Redis cannot be reached. */
  | 'store'
  /** A network cannot be loaded. */
  | 'network'
  /** Every GPU has stopped working. */
  | 'device'
  /** The system starts no more threads for this process. */
  | 'threads'
  | 'starting'
  | 'stopping';

/** An account's share of a rate limit. */
export interface RateWindow {
  /** Megapixels per window. */
  readonly limit: number;
  /** Megapixels left in it. */
  readonly remaining: number;
  /** Unix time in whole seconds at which the next one begins, never before this one has ended. */
  readonly reset: number;
}

interface ErrorParts {
  readonly detail?: string;
  /** Values for the placeholders of the title. */
  readonly fill?: Readonly<Record<string, string>>;
  /** Whole seconds after which to retry; every 429 and 503 has them. */
  readonly retryAfter?: number;
  /** Set if a rate limit is the reason. */
  readonly window?: RateWindow;
  /** Additional headers of the answer, for example Allow. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The error behind this one, for the log only. */
  readonly cause?: unknown;
  /** Why the client should retry, for log and metrics. */
  readonly reason?: Reason;
  /** Overrides the table: a 503 for lack of memory is reported, one for a full queue is not. */
  readonly reported?: boolean;
}

/** Seconds of Retry-After where whoever refuses gives none (`retrySeconds` in limits/retryAfter.ts). */
const retryAfterSeconds = 2;

/** An error with a public envelope. Created by `fail` and the functions below only. */
export class AppError extends Error {
  readonly id: ErrorId;
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Defined for every 429 and 503. */
  readonly retryAfter: number | undefined;
  readonly window: RateWindow | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly reason: Reason | undefined;
  readonly reported: boolean;

  constructor(id: ErrorId, parts: ErrorParts = {}) {
    const { code, status, title, detail, reported } = catalogue[id];
    super(`${code}: ${parts.detail ?? detail}`, parts.cause === undefined ? {} : { cause: parts.cause });
    this.name = 'AppError';
    this.id = id;
    this.code = code;
    this.status = status;
    this.title = title.replace(/\{(\w+)\}/g, (_, name: string) => parts.fill?.[name] ?? '');
    this.detail = parts.detail ?? detail;
    this.retryAfter = parts.retryAfter ?? (status === 429 || status === 503 ? retryAfterSeconds : undefined);
    this.window = parts.window;
    this.headers = Object.freeze({ ...parts.headers });
    this.reason = parts.reason;
    this.reported = parts.reported ?? reported;
  }

  /** Body of the answer: these three keys in this order, always strings (docs/contract.md section 10). */
  envelope(): string {
    return JSON.stringify({ errors: [{ title: this.title, code: this.code, detail: this.detail }] });
  }
}

export const fail = (id: ErrorId, parts?: ErrorParts): AppError => new AppError(id, parts);

/** A single instance: thousands of clients may disconnect at the same moment, and each stack trace takes time. */
export const clientClosed: AppError = fail('client_closed');

/** What was thrown, as text. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A caller's value for a message: of at most `length` characters, with control characters made visible. */
export function excerpt(value: string, length = 100): string {
  const characters = Array.from(value.slice(0, 2 * length + 2));
  const cut = characters.length > length ? `${characters.slice(0, length).join('')}…` : characters.join('');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to make visible
  return cut.replace(/[\u0000-\u001f\u007f]/g, '\ufffd');
}

/** 400 for what is no field of its own. */
export const malformed = (detail: string): AppError => fail('malformed_request', { detail });

/** 503 for work that could succeed at another time. */
export const unavailable = (reason: Reason, detail: string, parts: ErrorParts = {}): AppError =>
  fail('service_unavailable', { ...parts, reason, detail });

/** `expected` is the field's grammar in words. */
export const invalidOption = (id: InvalidOption, expected: string, received: string): AppError =>
  fail(id, { detail: `Expected ${expected}, received "${excerpt(received)}".` });

type KnownError = readonly [ErrorId, ErrorParts];

const busy = (reason: Reason, parts: ErrorParts = {}): KnownError => [
  'service_unavailable',
  { reason, ...parts },
];
/** Something that an operator has to look at. */
const broken = (reason: Reason, parts: ErrorParts = {}) => busy(reason, { reported: true, ...parts });

/** Maps codes of the native engine (src/engine/types.ts) and of the store to public errors. */
const knownErrors: Readonly<Record<string, KnownError>> = {
  ENGINE_BAD_INPUT: ['failed_to_read_image', {}],
  ENGINE_QUEUE_FULL: busy('queue'),
  ENGINE_CANCELLED: ['client_closed', {}],
  ENGINE_OUT_OF_MEMORY: broken('memory'),
  ENGINE_DEVICE_MEMORY: broken('memory'),
  ENGINE_DEVICE: broken('device', { detail: 'The GPUs of the service do not answer. Try again later.' }),
  IMAGE_NO_THREAD: broken('threads', {
    detail: 'The operating system could not run a thread or process for this image. Try again.',
  }),
  ENGINE_NOT_LOADED: broken('network', {
    detail: 'A network of the service cannot be loaded. Try again later.',
  }),
  ENGINE_CLOSED: busy('stopping', { detail: 'The service is shutting down. Try again.' }),
  STORE_UNAVAILABLE: busy('store', { detail: 'A store of the service cannot be reached. Try again.' }),
};

/** Converts anything thrown to an error that can be answered; an AppError is returned as it is. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const code: unknown = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  const known = typeof code === 'string' ? knownErrors[code] : undefined;
  if (known) return fail(known[0], { ...known[1], cause: thrown });
  return fail('internal_error', { cause: thrown });
}

/** A message for the person who starts or configures the program: printed without a stack, exit code 1. */
export class UserError extends Error {
  override readonly name = 'UserError';
}
