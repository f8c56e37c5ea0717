/** Says why a schema was refused, and where in it the reason lies. */
export class SchemaError extends TypeError {
  override readonly name = "SchemaError";
  /** JSON pointer into the schema. */
  readonly pointer: string;

  constructor(reason: string, pointer = "", options?: { readonly cause?: unknown }) {
    super(pointer === "" ? reason : `${reason} (at ${pointer} of the schema)`, options);
    this.pointer = pointer;
  }
}
