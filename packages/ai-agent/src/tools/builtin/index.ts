/** The tools that come with Sandlot, listed once. */
import type { Tool } from '../tool.ts'
import { askUser } from './ask-user.ts'
import { echo } from './echo.ts'
import { editFile } from './edit-file.ts'
import { glob } from './glob.ts'
import { listDirectory } from './list-directory.ts'
import { readFile } from './read-file.ts'
import { readOutput } from './read-output.ts'
import { readToolOutput } from './read-tool-output.ts'
import { runShellCommand } from './run-shell-command.ts'
import { searchText } from './search-text.ts'
import { stop } from './stop.ts'
import { updatePlan } from './update-plan.ts'
import { writeFile } from './write-file.ts'

export function builtinTools(): Tool[] {
  return [
    runShellCommand,
    readOutput,
    stop,
    readFile,
    writeFile,
    editFile,
    listDirectory,
    glob,
    searchText,
    readToolOutput,
    askUser,
    updatePlan,
    echo,
  ]
}
