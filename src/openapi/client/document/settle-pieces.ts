import { giveUp, type Position, type RefSite, type SchemaPiece } from "./schema-piece.ts";

/** A schema under `#/$defs`, with what looking at one value by it takes. */
export interface SettledPiece {
  readonly name: string;
  readonly piece: SchemaPiece;
  /** Subschemas that look at the value itself, those behind references included. */
  cost?: number | undefined;
  /** How deep references and combinations go, before a part of the value is looked at. */
  depth?: number | undefined;
}

/** Well below what the engine takes, so that several fit under one roof. */
const MAX_COST = 2_500;
const MAX_DEPTH = 160;
const LOOP = "A schema refers to itself without saying anything; anything is allowed there.";
const TOO_MUCH = "A schema combines more schemas than are checked; anything is allowed there.";

/** Measures definitions, and takes out what would never end: references in circles, and combinations without bounds. */
export function settlePieces(
  pieces: readonly SettledPiece[],
  find: (name: string) => SettledPiece | undefined,
): void {
  for (const start of pieces) descend(start, find);
  for (const { piece } of pieces) boundPiece(piece, find);
}

/** Gives up on a piece where one of its positions would take too much. */
export function boundPiece(piece: SchemaPiece, find: (name: string) => SettledPiece | undefined): void {
  for (const position of piece.positions) {
    const { cost, depth } = measure(position, find);
    if (cost <= MAX_COST && depth <= MAX_DEPTH) continue;
    giveUp(piece, TOO_MUCH);
    return;
  }
}

interface Frame {
  readonly settled: SettledPiece;
  readonly sites: readonly RefSite[];
  next: number;
}

function descend(start: SettledPiece, find: (name: string) => SettledPiece | undefined): void {
  if (start.cost !== undefined) return;
  const open = new Set<SettledPiece>([start]);
  const stack: Frame[] = [frameOf(start)];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const site = frame.sites[frame.next++];
    if (site === undefined) {
      finish(frame.settled, find);
      open.delete(frame.settled);
      stack.pop();
      continue;
    }
    const target = find(site.target);
    if (target === undefined || target.cost !== undefined) continue;
    if (open.has(target)) unlink(frame.settled.piece, site);
    else {
      open.add(target);
      stack.push(frameOf(target));
    }
  }
}

function frameOf(settled: SettledPiece): Frame {
  return { settled, sites: [...(settled.piece.positions[0]?.refs ?? [])], next: 0 };
}

function finish(settled: SettledPiece, find: (name: string) => SettledPiece | undefined): void {
  const [root] = settled.piece.positions;
  const measured = root === undefined ? { cost: 1, depth: 1 } : measure(root, find);
  if (measured.cost > MAX_COST || measured.depth > MAX_DEPTH) giveUp(settled.piece, TOO_MUCH);
  const fits = measured.cost <= MAX_COST && measured.depth <= MAX_DEPTH;
  settled.cost = fits ? measured.cost : 1;
  settled.depth = fits ? measured.depth : 1;
}

function measure(
  position: Position,
  find: (name: string) => SettledPiece | undefined,
): { cost: number; depth: number } {
  let cost = position.count;
  let deepest = 0;
  for (const { target } of position.refs) {
    const settled = find(target);
    cost += settled?.cost ?? 1;
    deepest = Math.max(deepest, settled?.depth ?? 1);
  }
  return { cost, depth: position.depth + deepest };
}

function unlink(piece: SchemaPiece, site: RefSite): void {
  delete site.holder["$ref"];
  piece.notes.add(LOOP);
  piece.refs = piece.refs.filter((other) => other !== site);
  for (const position of piece.positions) {
    const at = position.refs.indexOf(site);
    if (at !== -1) position.refs.splice(at, 1);
  }
}
