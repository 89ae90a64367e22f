/** The published description of the API (OpenAPI), as far as the pages use it. */

/** The parts of a JSON Schema that the pages use. */
export interface Schema {
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly contentMediaType?: string;
  readonly contentEncoding?: string;
  /** Other spellings of values of `enum`. */
  readonly 'x-aliases'?: Readonly<Record<string, unknown>>;
}

export interface FormSchema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

/** The parts of the OpenAPI document that the pages use. */
export interface Description {
  readonly paths: Readonly<
    Record<
      string,
      | {
          readonly post?: {
            readonly requestBody?: {
              readonly content: Readonly<Record<string, { readonly schema: FormSchema }>>;
            };
          };
        }
      | undefined
    >
  >;
}

/** Loads it from the service. */
export async function fetchDescription(): Promise<Description> {
  const response = await fetch('/openapi.json');
  if (!response.ok) throw new Error(`The answer was HTTP ${response.status}.`);
  return (await response.json()) as Description;
}
