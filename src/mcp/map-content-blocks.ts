import type { MCPContentBlock } from "../core/envelope/content-block.ts";
import { isContentBlock } from "../core/envelope/is-response-envelope.ts";
import { toJsonTextOrNone } from "../core/json/json-text.ts";

const UNWRITABLE = "[a content block that cannot be written as JSON]";

/**
 * Maps the blocks of a tool result one to one: those that MCP defines stay as they are, any other becomes a text block that holds
 * its JSON. Whatever it is given, it does not throw; what is no list has no blocks.
 */
export function mapMCPContentBlocks(blocks: unknown): MCPContentBlock[] {
  const mapped: MCPContentBlock[] = [];
  try {
    if (!Array.isArray(blocks)) return mapped;
    // By index, not with `map`, which a hostile array can bring along.
    for (let i = 0; i < blocks.length; i++) mapped.push(mapBlock(blocks, i));
  } catch {
    // A list that cannot be read ends where it cannot.
  }
  return mapped;
}

function mapBlock(blocks: readonly unknown[], index: number): MCPContentBlock {
  try {
    const block = blocks[index];
    if (isContentBlock(block)) return block;
    return { type: "text", text: toJsonTextOrNone(block) ?? UNWRITABLE };
  } catch {
    return { type: "text", text: UNWRITABLE };
  }
}
