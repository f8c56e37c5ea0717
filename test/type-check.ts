import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "./run-node.ts";

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts"],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
};

/** Our own pages use Node; what a consumer gets must do without its types. */
const WITH_NODE: ts.CompilerOptions = { ...OPTIONS, types: ["node"] };

/** Type-checks programs as if they lay in the repository root, against the built package; what is wrong, by name. */
export function typeErrors<Name extends string>(
  programs: Readonly<Record<Name, string>>,
): Record<Name, string[]> {
  const texts = new Map(Object.entries<string>(programs).map(([name, text]) => [pathOf(name), text]));
  const host = ts.createCompilerHost(WITH_NODE);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (file) => texts.has(file) || fileExists(file);
  host.getSourceFile = (file, version) => {
    const text = texts.get(file);
    return text === undefined ? getSourceFile(file, version) : ts.createSourceFile(file, text, version);
  };
  const program = ts.createProgram([...texts.keys()], WITH_NODE, host);
  const names = Object.keys(programs) as Name[];
  const found = names.map((name) => [name, errorsIn(program, program.getSourceFile(pathOf(name)))]);
  return Object.fromEntries(found);
}

function pathOf(name: string): string {
  return join(ROOT, `${name}.in-memory.ts`);
}

/** Type-checks a file and the declarations it uses from one folder, themselves included; what is wrong. */
export function consumerErrors(file: string, declarations: string): string[] {
  const program = ts.createProgram([file], OPTIONS);
  const checked = program
    .getSourceFiles()
    .filter(({ fileName }) => fileName === file || fileName.startsWith(declarations));
  if (checked.length < 2) return [`${file} uses nothing from ${declarations}`];
  return checked.flatMap((source) => errorsIn(program, source));
}

/** Type-checks a file and all declarations it leads to, as `tsc` does without `skipLibCheck`; what is wrong, and how many types were instantiated. */
export function checkWithLibraries(file: string): { errors: string[]; instantiations: number } {
  const program = ts.createProgram([file], OPTIONS);
  return { errors: errorsIn(program, undefined), instantiations: program.getInstantiationCount() };
}

function errorsIn(program: ts.Program, source: ts.SourceFile | undefined): string[] {
  const diagnostics = ts.getPreEmitDiagnostics(program, source);
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

/** Takes the types off a program, so that plain Node runs it. */
export function toJavaScript(text: string): string {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}
