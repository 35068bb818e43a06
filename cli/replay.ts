import type { Command } from "commander";

export function addReplayCommand(program: Command): void {
  program.command("replay").description("Not built yet.");
}
