import type { Command } from "commander";

export function addSuggestCommand(program: Command): void {
  program.command("suggest").description("Not built yet.");
}
