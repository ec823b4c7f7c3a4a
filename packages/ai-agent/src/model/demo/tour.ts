/**
 * The tour: a plan, calls side by side, an approval, a long output that is cut and read from its
 * file, and a failure that is explained.
 */
import {
  type DemoAnswer,
  type DemoCall,
  type DemoPrompt,
  type DoneCall,
  type Script,
  explainFailure,
  LABEL,
  primesBelow,
  quoted,
  wasDenied,
} from './script.ts'

const STEPS = [
  'Write two small files',
  'Look at them, several calls at once',
  'Run a program in the sandbox',
  'Make a very long output and read a part of it',
  'Run a command that fails, and explain it',
]

const FOLDER = 'sandlot-demo'
const NOTES = `# Notes\n\nThis file was written by the demo model.\n\n- TODO: add a model under Settings, Models, and talk to it\n- TODO: delete this folder\n`

type Step = (prompt: DemoPrompt) => DemoAnswer

const TOUR: readonly Step[] = [
  () => ({
    text: `${LABEL} I decide by simple rules, but everything else here is real: the tools, your sandbox, the approvals. Let me show you around. First, a plan.`,
    calls: [plan(0)],
  }),
  () => ({
    text: 'First I write two files into your workspace.',
    calls: [
      {
        name: 'write_file',
        args: { path: `${FOLDER}/primes.py`, content: primesBelow(60) },
      },
      { name: 'write_file', args: { path: `${FOLDER}/notes.md`, content: NOTES } },
    ],
  }),
  () => ({
    text: 'Now I look at what is there. These calls only read, so they run side by side.',
    calls: [
      plan(1),
      { name: 'list_directory', args: { path: FOLDER } },
      { name: 'read_file', args: { path: `${FOLDER}/primes.py` } },
      { name: 'search_text', args: { pattern: 'TODO', path: FOLDER } },
      { name: 'glob', args: { pattern: `${FOLDER}/*.py` } },
    ],
  }),
  () => ({
    text: 'Time to run something. A command can do anything inside your sandbox, so unless your mode is *yolo* you are asked first.',
    calls: [plan(2), shell(`python3 ${FOLDER}/primes.py`, 'Run the program')],
  }),
  ({ turns }) => ({
    text: [
      said(turns[3]?.calls[1], (call) => `It ran:\n\n${quoted(call.result)}`),
      'The next command prints 20,000 lines. Only the beginning and the end of that reach the model; you can see all of it.',
    ].join('\n\n'),
    calls: [plan(3), shell("seq -f 'line %g of a long output' 1 20000", 'Print 20,000 lines')],
  }),
  ({ turns }) => {
    const long = turns[4]?.calls[1]
    const path = /\/\S+\/\.tool-outputs\/\w+\.txt/.exec(long?.result ?? '')?.[0]
    return path === undefined
      ? { text: said(long, () => 'That was short enough to be shown whole.'), calls: [failing()] }
      : {
          text: `The middle was left out, and the notice names the file that has everything: \`${path}\`. I read five lines from it.`,
          calls: [{ name: 'read_file', args: { path, offset: 10_000, limit: 5 } }],
        }
  },
  ({ turns }) =>
    turns[5]?.calls[0]?.name === 'read_file'
      ? {
          text: 'Last, a command that fails. That is no drama: the exit code and the message come back to me.',
          calls: [plan(4), failing()],
        }
      : { text: 'That was the last step.', calls: [plan(5)] },
  ({ turns }) =>
    turns[6]?.calls.length === 1
      ? ending(turns[5]?.calls[0])
      : { text: explained(turns[6]?.calls[1]), calls: [plan(5)] },
  () => ending(undefined),
]

export const tourScript: Script = (prompt) => (TOUR[prompt.turns.length] ?? (() => ending(undefined)))(prompt)

function plan(current: number): DemoCall {
  const entries = STEPS.map((content, index) => ({
    content,
    priority: 'medium',
    status: index < current ? 'completed' : index === current ? 'in_progress' : 'pending',
  }))
  return { name: 'update_plan', args: { entries } }
}

function shell(command: string, description: string): DemoCall {
  return { name: 'run_shell_command', args: { command, description } }
}

function failing(): DemoCall {
  return shell('cat /workspace/this-file-does-not-exist.txt', 'Read a file that is not there')
}

function said(call: DoneCall | undefined, whenRun: (call: DoneCall) => string): string {
  if (call === undefined) return ''
  return wasDenied(call) ? 'You did not allow that one, so it was not run. On with the tour.' : whenRun(call)
}

function explained(call: DoneCall | undefined): string {
  return said(call, (failed) => `As promised, it failed. ${explainFailure(failed)}`)
}

function ending(unexplained: DoneCall | undefined): DemoAnswer {
  const parts = [
    unexplained === undefined ? '' : explained(unexplained),
    `That was the tour. The files are in \`${FOLDER}\` in your workspace: "run \`rm -r ${FOLDER}\`" removes them. Try "what is in my workspace?" or "run \`df -h\`" next, or press Stop in the middle of "run \`sleep 60\`".`,
    'Once an administrator has added a real model under Settings, Models, it works here in my place, with the same tools.',
  ]
  return { text: parts.filter((part) => part !== '').join('\n\n'), calls: [] }
}
