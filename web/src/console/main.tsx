import { render } from 'preact';
import { Top } from '../ui/Top.tsx';

const page = document.getElementById('page');
if (page) render(<Top here="/console" />, page);
