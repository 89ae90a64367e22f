import test from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { testEngineContract } from '../contract/engine.ts';

testEngineContract(test.serial as typeof test, () => loadAddon());
