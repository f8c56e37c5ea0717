/** Node's own byte routines, several times faster than portable ones; a browser does without. */
export const native = globalThis.process?.getBuiltinModule?.("node:buffer");
