import { z } from 'zod';
import { readKept } from './json.ts';
import type { NetworkFiles } from './layout.ts';

const preparedRecordSchema = z.strictObject({
  preparer: z.number().int(),
  sourceSha256: z.string(),
  sha256: z.string(),
  bytes: z.number().int(),
  precision: z.enum(['fp32', 'bf16', 'fp16', 'int8']),
  /** Names of the outputs: the matte, then the deepest feature map of the encoder if the manifest names one. */
  outputs: z.array(z.string()),
  /** Whether several images can be run in one batch. */
  freeBatch: z.boolean(),
  /** Number that both sides of the input must be a multiple of; 0 if the size is fixed. */
  sizeStep: z.number().int().min(0),
  /** SHA-256 of the scale table that an int8 network was made with. */
  tableSha256: z.string().optional(),
  /** Whether it has an operator of Cutout; false in the form `int8-operators` where the network cannot be made so. */
  operators: z.boolean().optional(),
  /** What a run on the CPU takes (compiler/onnx/memory.ts); none of the forms for a GPU and of subject points. */
  memory: z.strictObject({ bytes: z.number().int(), complete: z.boolean() }).optional(),
});

export type PreparedRecord = Readonly<z.infer<typeof preparedRecordSchema>>;

/** Bytes that a network takes, for a person. */
export const memoryText = ({ bytes, complete }: NonNullable<PreparedRecord['memory']>): string =>
  `${complete ? 'about' : 'at least'} ${Math.round(bytes / 1e6)} MB`;

/** Returns the record beside a prepared network; undefined if there is none or it cannot be read. */
export const readRecord = ({ record }: NetworkFiles): Promise<PreparedRecord | undefined> =>
  readKept(preparedRecordSchema, record);
