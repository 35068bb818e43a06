import type { Command } from "commander";

export function addExplainCommand(program: Command): void {
  program.command("explain").description("Not built yet.");
}
