import test from 'ava';
import { testChargesModel } from '../contract/chargesModel.ts';
import { sqlitePlace } from '../support/stores.ts';

testChargesModel(test, sqlitePlace, 10_000);
