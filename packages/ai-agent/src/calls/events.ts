/**
 * Turns the values that a tool yields and returns into events of its call. The scheduler adds the
 * call's id; nothing is renamed.
 */
import { makeMeta, type MetaFields } from '@sandlot/shared/chat/event-meta'
import { failureFields } from '@sandlot/shared/chat/reasons'
import { makeSandlotEvent, type SessionEvent } from '@sandlot/shared/chat/events'
import { toolLocation } from '@sandlot/shared/chat/call'
import type { WrittenNames } from '../tools/argument-aliases.ts'
import { type ToolCall, type ToolOutcome, type ToolTitle, type ToolUpdate, idOf } from '../tools/tool.ts'
import type { Log } from '../log.ts'

/** Ids of a call. */
export interface CallStamp {
  callId: string
  promptId: string
  turn: number
}

const TITLE_LENGTH = 300

interface AnnouncedCall {
  call: ToolCall
  /** Its arguments as they came, under their true names. */
  rawInput: unknown
  /** The aliases that the model wrote. */
  written: WrittenNames | undefined
  stamp: CallStamp
}

/** The call as the model made it, settled, before anything runs. `at`: epoch milliseconds. */
export function announcedEvent(
  { call, rawInput, written, stamp }: AnnouncedCall,
  log: Log,
  at: number,
): SessionEvent {
  const args = rawArguments(structuredClone(rawInput))
  const about = describe(call, args, log)
  return {
    sessionUpdate: 'tool_call',
    toolCallId: stamp.callId,
    title: about.title,
    name: call.name,
    kind: call.tool.kind,
    status: 'pending',
    rawInput,
    locations: about.locations,
    _meta: makeMeta({ ...fieldsOf(stamp), forProvider: written && { names: written } }, at),
  }
}

/** `at`: epoch milliseconds. */
export function updateEvent(update: ToolUpdate, stamp: CallStamp, at: number): SessionEvent {
  const event = (fields: MetaFields = {}) => ({
    _meta: makeMeta({ ...fieldsOf(stamp), ...fields }, at),
  })
  const base = { sessionUpdate: 'tool_call_update', toolCallId: stamp.callId } as const
  switch (update.type) {
    case 'output':
      return { ...base, ...event({ live: true, output: update.piece }) }
    case 'progress': {
      const { type: _, ...progress } = update
      return { ...base, ...event({ live: true, progress }) }
    }
    case 'started':
      return {
        ...base,
        status: 'in_progress',
        ...event(update.attempt === undefined ? {} : { attempt: update.attempt }),
      }
    case 'title': {
      const { type: _, ...about } = update
      return { ...base, ...about, ...event() }
    }
    case 'plan':
      return { sessionUpdate: 'plan', entries: update.entries, ...event() }
    case 'approval_asked': {
      const asked = { ...update, toolCallId: stamp.callId }
      return makeSandlotEvent(asked, fieldsOf(stamp), at)
    }
  }
}

/** The settled end of a call. `fatal`: the prompt ends when it failed. */
export function outcomeEvent(
  outcome: ToolOutcome,
  stamp: CallStamp,
  at: number,
  fatal = false,
): SessionEvent {
  const { exit, outputInfo, timing, content, forModel, data } = outcome
  const fields: MetaFields = {
    ...fieldsOf(stamp),
    exit,
    outputInfo,
    timing,
    ...(outcome.status === 'failed' ? failureFields(outcome.reason) : {}),
    ...(outcome.status === 'failed' && fatal ? { fatal } : {}),
  }
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: stamp.callId,
    status: outcome.status,
    content,
    rawOutput: { forModel, data },
    _meta: makeMeta(fields, at),
  }
}

function fieldsOf(stamp: CallStamp): MetaFields {
  return { promptId: stamp.promptId, turn: stamp.turn }
}

function rawArguments(rawInput: unknown): Record<string, unknown> {
  return typeof rawInput === 'object' && rawInput !== null ? (rawInput as Record<string, unknown>) : {}
}

/** A tool describes arguments that are not checked yet; if it cannot, its name has to do. */
function describe(call: ToolCall, args: Record<string, unknown>, log: Log): ToolTitle {
  try {
    const described = call.tool.title(args)
    const about: ToolTitle = typeof described === 'string' ? { title: described } : described
    const title = about.title.trim().slice(0, TITLE_LENGTH).toWellFormed()
    const locations = toolLocation.array().optional().parse(about.locations)
    return { title: title === '' ? call.name : title, locations }
  } catch (error) {
    log.warn({ err: error, tool: idOf(call.tool) }, 'a tool could not describe its arguments')
    return { title: call.name }
  }
}
